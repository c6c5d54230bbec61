package metric

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestTopDraws compares scores with ties with their mean over all choices among the tied pixels.
func TestTopDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + r.IntN(10)
		values, mask := make([]float64, n), make([]uint8, n)
		for i := range n {
			values[i], mask[i] = float64(r.IntN(3)), uint8(r.IntN(2))
		}
		mask[r.IntN(n)] = 1
		area, size := MaskArea(mask), 1+r.IntN(n)
		iou, hits, draws := 0.0, 0.0, 0.0
		for set := range uint(1) << n {
			if bits.OnesCount(set) != size || !isTop(values, set) {
				continue
			}
			h := 0
			for i := range n {
				if set>>i&1 == 1 && mask[i] != 0 {
					h++
				}
			}
			hits += float64(h)
			iou += float64(h) / float64(size+area-h)
			draws++
		}
		top := TopOf(values, mask, size)
		if got, want := top.IoU(area), iou/draws; math.Abs(got-want) > 1e-12 {
			t.Errorf("IoU of the top %d of %v and %v: %v, want %v", size, values, mask, got, want)
		}
		if got, want := top.Hits(), hits/draws; math.Abs(got-want) > 1e-12 {
			t.Errorf("hits of the top %d of %v and %v: %v, want %v", size, values, mask, got, want)
		}
	}
}

// isTop reports whether no value outside a set is larger than one inside.
func isTop(values []float64, set uint) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for i, v := range values {
		if set>>i&1 == 1 {
			least = min(least, v)
		} else {
			most = max(most, v)
		}
	}
	return most <= least
}

// TestLargeIoU compares the mean over the draws of a large image with sums of logarithms of factorials.
func TestLargeIoU(t *testing.T) {
	lf := func(n int) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		return x
	}
	choose := func(n, k int) float64 { return lf(n) - lf(k) - lf(n-k) }
	for _, c := range [][3]int{{50176, 5000, 3000}, {50176, 40000, 45000}, {50176, 1, 7}, {4096, 4096, 17}} {
		pixels, drawn, area := c[0], c[1], c[2]
		want := 0.0
		for h := max(0, drawn+area-pixels); h <= min(drawn, area); h++ {
			p := math.Exp(choose(area, h) + choose(pixels-area, drawn-h) - choose(pixels, drawn))
			want += p * float64(h) / float64(drawn+area-h)
		}
		if got := Anywhere(drawn, pixels, area).IoU(area); math.Abs(got-want) > 1e-8 {
			t.Errorf("%v: %v, want %v", c, got, want)
		}
	}
}

// TestGrown compares a grown mask with the distances of all pairs of pixels.
func TestGrown(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		h, w, radius := 1+r.IntN(9), 1+r.IntN(9), r.IntN(6)
		mask := make([]uint8, h*w)
		for i := range mask {
			if r.IntN(8) == 0 {
				mask[i] = 1
			}
		}
		got := Grown(mask, h, w, radius)
		for i := range mask {
			want := uint8(0)
			for j, m := range mask {
				dy, dx := i/w-j/w, i%w-j%w
				if m != 0 && dy*dy+dx*dx <= radius*radius {
					want = 1
				}
			}
			if got[i] != want {
				t.Fatalf("%d×%d, radius %d: pixel %d of %v is %d, want %d", h, w, radius, i, mask,
					got[i], want)
			}
		}
	}
}

// TestBoxMask checks which pixels have their centre in a box, also in boxes that leave the image.
func TestBoxMask(t *testing.T) {
	for _, c := range []struct {
		box  []float64
		want string
	}{
		{[]float64{0, 0, 2, 1}, "[1 1 0 0 0 0]"},
		{[]float64{0.5, 0.5, 1.5, 2}, "[1 0 0 1 0 0]"},
		{[]float64{0.51, 0, 2.5, 1}, "[0 1 0 0 0 0]"},
		{[]float64{-9, -9, 99, 99}, "[1 1 1 1 1 1]"},
		{[]float64{math.Inf(-1), 1, math.Inf(1), math.Inf(1)}, "[0 0 0 1 1 1]"},
		{[]float64{2, 1, 1, 0}, "[0 0 0 0 0 0]"},
		{[]float64{0, 0, 1, 1, 2, 1, 3, 2}, "[1 0 0 0 0 1]"},
		{nil, "[0 0 0 0 0 0]"},
	} {
		if got := fmt.Sprint(BoxMask(c.box, 2, 3)); got != c.want {
			t.Errorf("%v: %s, want %s", c.box, got, c.want)
		}
	}
}
