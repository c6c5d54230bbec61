package attribute

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestOcclusionOfRectangles holds maps of windows that aren't square against images occluded pixel by pixel,
// which the model answers one after the other.
func TestOcclusionOfRectangles(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	const side = 32
	for _, tt := range []struct {
		variant        string
		window, stride picture.Size
	}{
		{"paper", picture.Size{H: 12, W: 20}, picture.Size{H: 10, W: 16}},
		{"paper", picture.Size{H: 40, W: 7}, picture.Square(7)},
		{"official", picture.Size{H: 16, W: 15}, picture.Size{H: 8, W: 15}},
	} {
		p := &OcclusionParams{Tapped: tapped(), Variant: tt.variant, Window: tt.window, Stride: tt.stride,
			Baseline: "zero"}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		got := mapsOf(t, Occlusion, p, in)
		for i := range got {
			x, err := stages.DecodeTensor(payload(t, in["images"][0], i))
			if err != nil {
				t.Fatal(err)
			}
			whole := answerTo(t, in, p.Common, i, x.Float32s())
			sum, count := make([]float64, side*side), make([]float64, side*side)
			for _, y := range begins(tt.variant, tt.window.H, tt.stride.H, side) {
				for _, x0 := range begins(tt.variant, tt.window.W, tt.stride.W, side) {
					hidden := x.Float32s()
					var covered []int
					for k := range side * side {
						if r, c := k/side, k%side; y <= r && r < y+tt.window.H && x0 <= c &&
							c < x0+tt.window.W {
							covered = append(covered, k)
							hidden[k], hidden[k+side*side], hidden[k+2*side*side] = 0, 0, 0
						}
					}
					fall := whole - answerTo(t, in, p.Common, i, hidden)
					for _, k := range covered {
						count[k]++
						if tt.variant == "official" {
							sum[k] += fall / float64(len(covered))
						} else {
							sum[k] += fall
						}
					}
				}
			}
			for k, v := range got[i] {
				want := sum[k]
				if tt.variant == "paper" {
					want /= count[k]
				}
				if !(math.Abs(v-want) <= 1e-5) {
					t.Fatalf("%s, window %v, stride %v, image %d, pixel %d: %v, want %v", tt.variant,
						tt.window, tt.stride, i, k, v, want)
				}
			}
		}
	}
}

// begins returns where the windows of an axis begin, also before the image. Every one hides something.
func begins(variant string, side, stride, size int) (at []int) {
	switch {
	case variant == "paper":
		for from := 0; ; from += stride {
			at = append(at, from)
			if from+side >= size {
				return at
			}
		}
	case side%2 == 1:
		for from := -(side / 2); len(at) < size/stride+side/stride-1 && from < size; from += stride {
			at = append(at, from)
		}
	default:
		for from := stride - side/stride*stride; from < size; from += stride {
			at = append(at, from)
		}
	}
	return at
}

// TestOcclusionOfSquares checks that one number is the same window as two equal ones.
func TestOcclusionOfSquares(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	var sums []stages.Digest
	for _, text := range []string{"16", "16x16", "[16, 16]"} {
		p := Occlusion.NewParams().(*OcclusionParams)
		for _, s := range []*picture.Size{&p.Window, &p.Stride} {
			if err := s.UnmarshalText([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		sums = append(sums, stages.Sum(stagetest.Run(t, Occlusion, p, in).Payloads["maps"][0]))
	}
	if sums[0] != sums[1] || sums[0] != sums[2] {
		t.Errorf("digests of maps: %v", sums)
	}
}
