package thumbnail

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestShrink compares with means over whole pixels, and keeps the sum.
func TestShrink(t *testing.T) {
	v := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	got := shrink(v, 4, 4, 2, 2)
	for i, want := range []float64{3.5, 5.5, 11.5, 13.5} {
		if got[i] != want {
			t.Errorf("pixel %d is %g, not %g", i, got[i], want)
		}
	}
	sum := 0.0
	for _, x := range shrink(v, 4, 4, 3, 3) {
		sum += x
	}
	if mean := sum / 9; mean < 8.5-1e-12 || mean > 8.5+1e-12 {
		t.Errorf("the mean of 3×3 pixels is %g, not 8.5", mean)
	}
}

func planeOf(t *testing.T, m stages.Tensor) Plane {
	t.Helper()
	p, err := PlaneOf(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLevels: 0 stays in the middle of a signed map, and constant and undefined maps are named.
func TestLevels(t *testing.T) {
	p := planeOf(t, stages.NewTensor([]float64{-1, 0, 0.5, 1}, 2, 2))
	low, high := p.Ends(p.Negative)
	if got := p.Levels(low, high); string(got) != "\x01\x80\xc0\xff" {
		t.Errorf("levels %v of −1, 0, 0.5 and 1", got)
	}
	if p := planeOf(t, stages.NewTensor([]float32{2, 2, 2, 2}, 2, 2)); p.State != "constant" {
		t.Errorf("a constant map is %q", p.State)
	}
	nan := float32(math.NaN())
	if p := planeOf(t, stages.NewTensor([]float32{1, nan, 2, 2}, 2, 2)); p.State != "undefined" {
		t.Errorf("a map with NaN is %q", p.State)
	}
}

// TestEncode: a thumbnail holds the values between its ends to half a level, and its state.
func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, sign := range []float64{-0.5, 0, 3} {
		v := make([]float64, 2*30*40)
		for i := range v {
			v[i] = r.Float64() + sign
		}
		p := planeOf(t, stages.NewTensor(v, 2, 30, 40)).Within(16)
		if p.W != 16 || p.H != 12 || p.Negative != (sign < 0) {
			t.Errorf("%d×%d pixels, negative %v", p.W, p.H, p.Negative)
		}
		low, high := p.Ends(p.Negative)
		q, err := Decode(p.Encode())
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range q.Values {
			if want := min(max(p.Values[i], low), high); math.Abs(x-want) > (high-low)/508+1e-12 {
				t.Fatalf("value %d is %g, not %g", i, x, want)
			}
		}
		if q.State != "" || q.Negative != p.Negative || q.W != p.W || q.H != p.H {
			t.Errorf("a thumbnail came back as %d×%d, %q, negative %v", q.W, q.H, q.State, q.Negative)
		}
	}
	inf := math.Inf(1)
	for want, m := range map[string]stages.Tensor{
		"constant":  stages.NewTensor([]float64{-2, -2}, 1, 2),
		"undefined": stages.NewTensor([]float64{inf, 1}, 1, 2),
	} {
		q, err := Decode(planeOf(t, m).Encode())
		if err != nil || q.State != want {
			t.Errorf("a thumbnail of a map that is %s is %q: %v", want, q.State, err)
		}
		if want == "constant" && q.Values[1] != -2 {
			t.Errorf("the value of a constant map is %g", q.Values[1])
		}
	}
}

// TestImage: pixels are means, rounded, of u8 and of f32 alike; what is small enough stays.
func TestImage(t *testing.T) {
	u8 := []uint8{0, 10, 20, 31, 100, 100, 200, 200, 1, 2, 3, 4, 5, 6, 7, 8, 255, 255, 255, 255, 0, 0, 0, 0}
	f32 := make([]float32, len(u8))
	for i, x := range u8 {
		f32[i] = float32(x) / 255
	}
	for _, in := range []stages.Tensor{stages.NewTensor(u8, 3, 2, 4), stages.NewTensor(f32, 3, 2, 4)} {
		got, err := Image(in.Encode(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if want := stages.NewTensor([]uint8{53, 113, 4, 6, 128, 128}, 3, 1, 2); string(got.Encode()) !=
			string(want.Encode()) {
			t.Errorf("%s %v became %v", in.DType, u8, got.Raw)
		}
	}
	in := stages.NewTensor(u8, 3, 2, 4)
	if got, err := Image(in.Encode(), 4); err != nil || string(got.Encode()) != string(in.Encode()) {
		t.Errorf("an image of 4 pixels changed: %v", err)
	}
	if _, err := Image(stages.NewTensor(u8, 2, 3, 4).Encode(), 4); err == nil {
		t.Error("two channels are no error")
	}
}
