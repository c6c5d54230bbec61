package webpage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
)

// TestLarge: the page of 200 images, 20 methods and 5 nets has at most 40 MB, though all maps are noise,
// which nothing compresses. It is written to $REVIEW_LARGE, where the test in the browser opens it.
func TestLarge(t *testing.T) {
	const images, methods, nets, side = 200, 20, 5, 64
	r := rand.New(rand.NewPCG(1, 2))
	var ids []string
	for i := range images {
		ids = append(ids, fmt.Sprintf("image-%03d", i))
	}
	noise := make([]float32, 40*side*side)
	for i := range noise {
		noise[i] = r.Float32() - 0.5
	}
	heat := func(int) ([]byte, error) { // another one each time
		at := r.IntN(len(noise) - side*side)
		return stages.NewTensor(noise[at:at+side*side], side, side).Encode(), nil
	}
	pixels := make([]uint8, 3*side*side)
	for i := range pixels {
		pixels[i] = uint8(r.IntN(256))
	}
	photo := stages.NewTensor(pixels, 3, side, side).Encode()
	payloads := func(at string, load func(int) ([]byte, error)) *results.Payloads {
		return &results.Payloads{At: at, IDs: ids, Load: load}
	}
	files := map[string]string{"experiment.yaml": "name: large\ntitle: A large folder\n"}
	var cells, items strings.Builder
	items.WriteString("cell/item," + strings.Join(ids, ",") + "\n")
	var maps []*results.CellMaps
	photos := payloads("images", func(int) ([]byte, error) { return photo, nil })
	for n := range nets {
		for m := range methods {
			coord := []stages.Coord{{Axis: "method", ID: fmt.Sprintf("m%02d", m)},
				{Axis: "model", ID: fmt.Sprintf("net%d", n)}}
			place := fmt.Sprintf("[method=m%02d,model=net%d]", m, n)
			maps = append(maps, &results.CellMaps{Cell: "maps" + place, Coord: coord,
				Maps: payloads("maps"+place, heat), Images: photos})
			cells.WriteString(line("score"+place, float64(m)))
			fmt.Fprintf(&items, "%q", "score"+place)
			for range ids {
				fmt.Fprintf(&items, ",%.6g", r.NormFloat64()+float64(m)/10)
			}
			items.WriteString("\n")
		}
	}
	files["cells/score.jsonl"], files["items/score.csv"] = cells.String(), items.String()
	v, err := publish.ReadVersion(folder(t, files))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, Source{Version: v, Maps: maps}, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(b.Len())/1e6)
	if b.Len() > 40e6 {
		t.Errorf("the page has %d bytes, more than 40 MB", b.Len())
	}
	if file := os.Getenv("REVIEW_LARGE"); file != "" {
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
