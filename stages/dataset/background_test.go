package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestBackground checks that a value has all images in order, or some of them, drawn by the seed.
func TestBackground(t *testing.T) {
	image := func(v uint8) []byte { return stages.NewTensor(slices.Repeat([]uint8{v}, 6), 3, 1, 2).Encode() }
	var payloads [][]byte
	for v := range uint8(9) {
		payloads = append(payloads, image(v))
	}
	in := map[string][]stages.Data{"images": {stagetest.Items(nil, payloads...)}}
	shades := func(most int) (shades []uint8) {
		t.Helper()
		r := stagetest.Run(t, Background, &BackgroundParams{Most: most}, in)
		b, err := stages.DecodeTensor(r.Payloads["background"][0])
		if err != nil || b.DType != stages.U8 || !slices.Equal(b.Shape[1:], []int{3, 1, 2}) ||
			len(b.Raw) != 6*b.Shape[0] {
			t.Fatalf("%v of shape %v: %v", b.DType, b.Shape, err)
		}
		for k := 0; k < len(b.Raw); k += 6 {
			shades = append(shades, b.Raw[k])
		}
		return shades
	}
	for _, most := range []int{0, 9, 200} {
		if got := shades(most); !slices.Equal(got, []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("most: %d gives %v", most, got)
		}
	}
	some := shades(4)
	if len(some) != 4 || !slices.IsSorted(some) || len(slices.Compact(slices.Clone(some))) != 4 {
		t.Errorf("most: 4 gives %v", some)
	}
	if again := shades(4); !slices.Equal(some, again) {
		t.Errorf("%v, and then %v", some, again)
	}

	payloads[2] = stages.NewTensor([]uint8{1, 1, 1}, 3, 1, 1).Encode()
	in["images"] = []stages.Data{stagetest.Items(nil, payloads...)}
	_, err := stagetest.Try(Background, nil, in)
	if err == nil || !strings.Contains(err.Error(), `"item-2"`) {
		t.Errorf("error %v of images of two sizes", err)
	}
	in["images"] = []stages.Data{stagetest.Items(nil)}
	if _, err := stagetest.Try(Background, nil, in); err == nil {
		t.Error("no error of no images")
	}
}
