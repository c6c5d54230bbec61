package impute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// structured returns masks of removed pixels in the shapes that maps of regions and of single pixels have.
func structured(height, width int, r *rand.Rand) map[string][]bool {
	out := map[string][]bool{}
	add := func(name string, removed func(y, x int) bool) {
		mask := make([]bool, height*width)
		for i := range mask {
			mask[i] = removed(i/width, i%width)
		}
		if slices.Contains(mask, false) {
			out[name] = mask
		}
	}
	for _, side := range []int{1, 2, 4, 7} {
		columns := (width + side - 1) / side
		cells := (height + side - 1) / side * columns
		for _, share := range []float64{0.1, 0.5, 0.9} {
			order := r.Perm(cells)
			add(fmt.Sprintf("%v of the cells of %d", share, side), func(y, x int) bool {
				return float64(order[y/side*columns+x/side]) < share*float64(cells)
			})
		}
		one := r.IntN(cells)
		add(fmt.Sprintf("all cells of %d but one", side), func(y, x int) bool {
			return y/side*columns+x/side != one
		})
		add(fmt.Sprintf("one cell of %d", side), func(y, x int) bool { return y/side*columns+x/side == one })
		add(fmt.Sprintf("checkerboard of %d", side), func(y, x int) bool { return (y/side+x/side)%2 == 0 })
		add(fmt.Sprintf("rows of %d", side), func(y, _ int) bool { return y/side%2 == 0 })
		add(fmt.Sprintf("columns of %d", side), func(_, x int) bool { return x/side%2 == 1 })
		add(fmt.Sprintf("all but each %d", side+1), func(y, x int) bool {
			return y%(side+1) != 0 || x%(side+1) != 0
		})
	}
	return out
}

// extreme returns flat, sparse and binary images, and some whose removed pixels, remaining pixels or first
// channel are 0 or much smaller than the rest.
func extreme(channels int, removed []bool, r *rand.Rand) map[string][]float32 {
	out := map[string][]float32{}
	add := func(name string, value func(c, i int) float64) {
		x := make([]float32, channels*len(removed))
		for k := range x {
			x[k] = float32(value(k/len(removed), k%len(removed)))
		}
		out[name] = x
	}
	add("constant", func(c, _ int) float64 { return float64(c) - 1 })
	add("sparse", func(int, int) float64 { return float64(1-min(1, r.IntN(50))) * r.NormFloat64() })
	add("binary", func(int, int) float64 { return float64(r.IntN(2)) })
	add("noise", func(int, int) float64 { return r.NormFloat64() })
	for _, scale := range []float64{0, 1e-30, 1e-12, 1e-6, 1e-3} {
		of := func(small bool) float64 {
			if small {
				return scale * r.Float64()
			}
			return 0.5 + r.Float64()
		}
		add(fmt.Sprintf("%v remaining", scale), func(_, i int) float64 { return of(!removed[i]) })
		add(fmt.Sprintf("%v removed", scale), func(_, i int) float64 { return of(removed[i]) })
		add(fmt.Sprintf("%v in a channel", scale), func(c, _ int) float64 { return of(c == 0) })
	}
	return out
}

// TestEveryMaskConverges holds that what is imputed is exact, and soon, for every mask that keeps a pixel, of
// every image. It holds of images whose remaining pixels are all 0, too, as those of model/units are once the
// most relevant cells are removed.
func TestEveryMaskConverges(t *testing.T) {
	for _, size := range [][3]int{{3, 16, 16}, {2, 9, 14}, {3, 1, 17}, {3, 2, 2}, {1, 1, 2}} {
		channels, height, width := size[0], size[1], size[2]
		n := height * width
		r := rand.New(rand.NewPCG(7, uint64(n)))
		for shape, removed := range structured(height, width, r) {
			for kind, image := range extreme(channels, removed, r) {
				want := cholesky(t, image, height, width, removed)
				largest := 0.0
				for i, v := range image {
					if !removed[i%n] {
						largest = max(largest, math.Abs(float64(v)))
					}
				}
				m := New(height, width)
				if err := m.Impute(image, removed); err != nil || m.iterations > 15 {
					t.Fatalf("%v, %s removed, %s: %d iterations, error %v", size, shape, kind, m.iterations,
						err)
				}
				for i, v := range image {
					if d := math.Abs(float64(v) - want[i]); !(d <= 1e-7*largest) {
						t.Fatalf("%v, %s removed, %s: value %d is %v, want %v", size, shape, kind, i, v,
							want[i])
					}
				}
			}
		}
	}
}
