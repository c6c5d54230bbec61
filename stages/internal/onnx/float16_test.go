package onnx

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFloat16 holds that every number of 16 bits is its own nearest, and that others are rounded to the
// nearest, of two equally near ones to the even.
func TestFloat16(t *testing.T) {
	const infinity = 0x7c00
	for v := range uint16(infinity) {
		for _, sign := range []uint16{0, 0x8000} {
			if got := ToFloat16(FromFloat16(sign | v)); got != sign|v {
				t.Fatalf("%#x is its own nearest, not %#x", sign|v, got)
			}
		}
		if v+1 == infinity {
			break
		}
		low, high := FromFloat16(v), FromFloat16(v+1)
		middle := float32((float64(low) + float64(high)) / 2) // exact
		for _, c := range []struct {
			x    float32
			want uint16
		}{
			{math.Nextafter32(middle, 0), v}, {middle, v + v&1},
			{math.Nextafter32(middle, high), v + 1},
		} {
			if got := ToFloat16(c.x); got != c.want {
				t.Fatalf("%g is nearest to %#x, not %#x", c.x, c.want, got)
			}
		}
	}
	inf := float32(math.Inf(1))
	for x, want := range map[float32]uint16{65519.996: 0x7bff, 65520: infinity, inf: infinity, -inf: 0xfc00,
		1e-30: 0, 1: 0x3c00} {
		if got := ToFloat16(x); got != want {
			t.Errorf("%g is nearest to %#x, not %#x", x, want, got)
		}
	}
	if nan := FromFloat16(ToFloat16(float32(math.NaN()))); nan == nan {
		t.Errorf("NaN becomes %g", nan)
	}
	r := rand.New(rand.NewPCG(36, 2))
	for range 1000 {
		x := math.Exp(r.NormFloat64() * 3)
		if off := math.Abs(float64(FromFloat16(ToFloat16(float32(x))))/x - 1); off > 1.0/(1<<11)+1e-6 {
			t.Errorf("%g is rounded by %g of it", x, off)
		}
	}
}
