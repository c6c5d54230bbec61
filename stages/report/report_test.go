package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/stagetest"
)

// shapes returns the first images of dataset/shapes, their labels and their masks.
func shapes(t testing.TB, n, size int) map[string]stages.Data {
	t.Helper()
	r := stagetest.Run(t, dataset.Shapes, &dataset.ShapesParams{Count: n, Size: size, Seed: 1, Domain: "a"},
		nil)
	out := map[string]stages.Data{}
	for port, payloads := range r.Payloads {
		out[port] = stagetest.Items(r.Facts[port], payloads...)
	}
	return out
}

// blurred returns a soft version of the mask, like the map of a good method.
func blurred(mask []byte, size int, r *rand.Rand, noise float64) []byte {
	m, err := stages.DecodeTensor(mask)
	if err != nil {
		panic(err)
	}
	v := m.Float64s()
	out := make([]float32, len(v))
	for i := range out {
		sum := 0.0
		for dy := -3; dy <= 3; dy++ {
			for dx := -3; dx <= 3; dx++ {
				x, y := i%size+dx, i/size+dy
				if x >= 0 && y >= 0 && x < size && y < size {
					sum += v[y*size+x]
				}
			}
		}
		out[i] = float32(sum/49 + noise*r.NormFloat64())
	}
	return stages.NewTensor(out, size, size).Encode()
}

// mapsOf returns synthetic maps of several methods: soft, noisy, zero, and one with an undefined value.
func mapsOf(masks stages.Data, size int) []stages.Data {
	r := rand.New(rand.NewPCG(5, 6))
	var out []stages.Data
	for _, method := range []string{"ig", "noise", "occlusion", "saliency", "zero"} {
		var payloads [][]byte
		for i := range masks.Items.Len() {
			b, err := masks.Load(i)
			if err != nil {
				panic(err)
			}
			switch method {
			case "ig":
				b = blurred(b, size, r, 0.3)
			case "noise":
				b = blurred(b, size, r, 100)
			case "occlusion":
				b = blurred(b, size, r, 0)
			case "saliency":
				v := make([]float32, size*size)
				for k := range v {
					v[k] = float32(math.Abs(r.NormFloat64())) * 1e-4
				}
				b = stages.NewTensor(v, size, size).Encode()
			case "zero":
				v := make([]float32, size*size)
				if i == 1 {
					v[7] = float32(math.NaN())
				}
				b = stages.NewTensor(v, size, size).Encode()
			}
			payloads = append(payloads, b)
		}
		out = append(out, stagetest.At(stagetest.Items(nil, payloads...), "method", method))
	}
	return out
}

// scoresOf returns a cell of scores.
func scoresOf(facts stages.Facts, coord []string, values ...float64) stages.Data {
	var payloads [][]byte
	for _, v := range values {
		payloads = append(payloads, stages.Scalar(v))
	}
	return stagetest.At(stagetest.Items(facts, payloads...), coord...)
}

// curvesOf returns decaying curves of n images.
func curvesOf(n, steps int, order string, rate, noise float64, coord ...string) stages.Data {
	r := rand.New(rand.NewPCG(uint64(n), uint64(steps)))
	var payloads [][]byte
	for range n {
		v := make([]float64, 3*(steps+1))
		level := 0.8 + 0.2*r.Float64()
		for k := range steps + 1 {
			x := float64(k) / float64(steps)
			p := level*math.Exp(-rate*x) + noise*r.NormFloat64()
			if order == "insertion" {
				p = level * (1 - math.Exp(-rate*x))
			}
			v[k] = min(max(p, 0), 1)
			v[steps+1+k] = 10 * v[k]
			v[2*steps+2+k] = math.Round(v[k])
		}
		payloads = append(payloads, stages.NewTensor(v, 3, steps+1).Encode())
	}
	facts := stages.Facts{"responses": "probability,logit,correct", "order": order}
	return stagetest.At(stagetest.Items(facts, payloads...), coord...)
}

func decodeTable(t testing.TB, r stagetest.Result, port string) stages.Table {
	t.Helper()
	table, err := stages.DecodeTable(r.Payloads[port][0])
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// text formats a table's rows, one per line, undefined numbers as "-".
func text(table stages.Table) string {
	var b strings.Builder
	head := slices.Clone(table.Keys)
	for _, c := range table.Numbers {
		head = append(head, c.Name)
	}
	fmt.Fprintln(&b, strings.Join(head, "|"))
	for _, r := range table.Rows {
		line := slices.Clone(r.Keys)
		for _, n := range r.Numbers {
			if n.Undefined() {
				line = append(line, "-")
			} else {
				line = append(line, fmt.Sprintf("%.4g", float64(n)))
			}
		}
		fmt.Fprintln(&b, strings.Join(line, "|"))
	}
	return b.String()
}

func look(t testing.TB, name string, b []byte) image.Image {
	t.Helper()
	keep(t, name+".png", b)
	m, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// keep writes a file for inspection.
func keep(t testing.TB, name string, b []byte) {
	t.Helper()
	if dir := os.Getenv("RUNEXP_LOOK"); dir != "" { // a folder to write the figures to
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// lookAt is look for a page of images, whose files it checks; it returns its PNG.
func lookAt(t testing.TB, name string, r stagetest.Result) image.Image {
	t.Helper()
	keep(t, name+".svg", r.Payloads["figure"][0])
	keep(t, name+".pdf", r.Payloads["pdf"][0])
	for port, ext := range map[string]string{"figure": "svg", "png": "png", "pdf": "pdf"} {
		if r.Facts[port]["ext"] != ext || r.Facts[port]["caption"] == "" {
			t.Errorf("%s: the port %s has the facts %v", name, port, r.Facts[port])
		}
	}
	if err := xml.Unmarshal(r.Payloads["figure"][0], new(struct{})); err != nil {
		t.Errorf("%s: the SVG is no XML: %v", name, err)
	}
	return look(t, name, r.Payloads["png"][0])
}

var pdfImage = regexp.MustCompile(
	`/Subtype/Image/Width (\d+)/Height (\d+)/BitsPerComponent 8(/ColorSpace/DeviceGray)?`)

// imageSizes counts the images of a PDF file by their size in pixels, "64×64", without those of opacity.
func imageSizes(b []byte) map[string]int {
	sizes := map[string]int{}
	for _, m := range pdfImage.FindAllSubmatch(b, -1) {
		if m[3] == nil {
			sizes[string(m[1])+"×"+string(m[2])]++
		}
	}
	return sizes
}

// shownBy returns what a page says that it shows.
func shownBy(t testing.TB, r stagetest.Result) (s shown) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Facts["figure"]["shown"]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func refuses(t *testing.T, s stages.Stage, params any, in map[string][]stages.Data, want string) {
	t.Helper()
	if _, err := stagetest.Try(s, params, in); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got the error %v, want %q", s.Name, err, want)
	}
}
