package report

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestThumbnails computes anew, on maps twice as large as a thumbnail: a pixel is the mean of four, in as
// many levels between ±x as eight bits have on either side of 0. x is the 6,878th of 6,912 magnitudes: the
// smallest that at most half a percent of them exceeds.
func TestThumbnails(t *testing.T) {
	const w, h = 192, 144
	signed, positive := make([]float32, 2*w*h), make([]float64, w*h)
	for i := range signed {
		signed[i] = float32(i*7919%1009)/64 - 7 // whole multiples of 1/64, whose sums are exact
	}
	for i := range positive {
		positive[i] = 3 + float64(i*7919%1009)
	}
	got := stagetest.Run(t, Thumbnails, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil,
		stages.NewTensor(signed, 2, h, w).Encode(), stages.NewTensor(positive, h, w).Encode(),
		stages.NewTensor([]float32{1, float32(math.Inf(-1))}, 1, 2).Encode())}})
	value := []func(int) float64{
		func(i int) float64 { return float64(signed[i]) + float64(signed[i+w*h]) },
		func(i int) float64 { return positive[i] },
	}
	for item, v := range value {
		means := make([]float64, 96*72)
		for i := range means {
			at := i/96*2*w + i%96*2
			means[i] = (v(at) + v(at+1) + v(at+w) + v(at+w+1)) / 4
		}
		sorted := slices.Clone(means)
		if item == 0 {
			for i := range sorted {
				sorted[i] = math.Abs(sorted[i])
			}
		}
		slices.Sort(sorted)
		low, high := sorted[34], sorted[6877] // 0.5 and 99.5 % of 6,912, up to whole values
		if item == 0 {
			low = -high
		}
		ends := tensor(t, got.Payloads["ends"][item])
		if e := ends.Float64s(); e[0] != low || e[1] != high {
			t.Errorf("map %d: the ends are %v, not %v and %v", item, e, low, high)
		}
		small := tensor(t, got.Payloads["thumbnails"][item])
		if small.DType != stages.U8 || !slices.Equal(small.Shape, []int{72, 96}) {
			t.Fatalf("map %d: a thumbnail is %s %v", item, small.DType, small.Shape)
		}
		for i, q := range small.Raw {
			want := 1 + 254*(means[i]-low)/(high-low)
			if want = min(max(want, 1), 255); math.Abs(float64(q)-want) > 0.5+1e-9 {
				t.Fatalf("map %d, pixel %d: level %d of %v, not %.2f", item, i, q, means[i], want)
			}
		}
	}
	if ends := tensor(t, got.Payloads["ends"][2]).Float64s(); !math.IsNaN(ends[0]) || !math.IsNaN(ends[1]) {
		t.Errorf("the ends of an undefined map are %v", ends)
	}
	if raw := tensor(t, got.Payloads["thumbnails"][2]).Raw; !slices.Equal(raw, []byte{0, 0}) {
		t.Errorf("the levels of an undefined map are %v", raw)
	}
}

func tensor(t *testing.T, payload []byte) stages.Tensor {
	t.Helper()
	x, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
