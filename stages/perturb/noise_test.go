package perturb

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// noisy returns images of 3×40×40 pixels, all of the value v but one that is 1, with noise.
func noisy(t *testing.T, p NoiseParams, v uint8) []float64 {
	t.Helper()
	image := make([]uint8, 3*40*40)
	for i := range image {
		image[i] = v
	}
	image[0] = 255
	in := map[string][]stages.Data{
		"images": {stagetest.Items(nil, stages.NewTensor(image, 3, 40, 40).Encode())}}
	r := stagetest.Run(t, Noise, &p, in)
	out, err := stages.DecodeTensor(r.Payloads["images"][0])
	if err != nil {
		t.Fatal(err)
	}
	if out.DType != stages.F32 || len(out.Shape) != 3 {
		t.Fatalf("%s %v", out.DType, out.Shape)
	}
	return out.Float64s()
}

// TestNoise holds the moments of both distributions, that draws and scales are what their names say, and
// what is cut off.
func TestNoise(t *testing.T) {
	const grey = 51 // a fifth
	for _, c := range []struct {
		p         NoiseParams
		deviation float64
	}{
		{NoiseParams{"a", "normal", 0.1, "pixel", false}, 0.1},
		{NoiseParams{"a", "normal", 0.1, "range", false}, 0.08},
		{NoiseParams{"a", "uniform", 0.3, "pixel", false}, 0.3 / math.Sqrt(3)},
	} {
		v := noisy(t, c.p, grey)
		sum, squares, most := 0.0, 0.0, 0.0
		for _, x := range v[1:] {
			d := x - 0.2
			sum, squares, most = sum+d, squares+d*d, math.Max(most, math.Abs(d))
		}
		n := float64(len(v) - 1)
		if mean := sum / n; math.Abs(mean) > 4*c.deviation/math.Sqrt(n) {
			t.Errorf("%+v: the mean is %v", c.p, mean)
		}
		if d := math.Sqrt(squares / n); math.Abs(d/c.deviation-1) > 4/math.Sqrt(2*n) {
			t.Errorf("%+v: a deviation of %v, want %v", c.p, d, c.deviation)
		}
		if c.p.Distribution == "uniform" && most > c.p.Scale+1e-6 {
			t.Errorf("%+v: as much as %v", c.p, most)
		}
	}
	a := noisy(t, NoiseParams{"a", "normal", 0.1, "pixel", false}, grey)
	twice := noisy(t, NoiseParams{"a", "normal", 0.2, "pixel", false}, grey)
	other := noisy(t, NoiseParams{"b", "normal", 0.1, "pixel", false}, grey)
	product, squares := 0.0, 0.0
	for i := 1; i < len(a); i++ {
		if math.Abs((twice[i]-0.2)-2*(a[i]-0.2)) > 1e-6 {
			t.Fatalf("value %d: %v and %v", i, a[i], twice[i])
		}
		product, squares = product+(a[i]-0.2)*(other[i]-0.2), squares+(a[i]-0.2)*(a[i]-0.2)
	}
	if r := product / squares; math.Abs(r) > 4/math.Sqrt(float64(len(a))) {
		t.Errorf("two draws correlate by %v", r)
	}
	for i, x := range noisy(t, NoiseParams{"a", "normal", 0.5, "pixel", true}, grey) {
		if x < 0 || x > 1 {
			t.Fatalf("value %d is %v", i, x)
		}
	}
	for i, x := range noisy(t, NoiseParams{"a", "normal", 0, "pixel", false}, grey)[1:] {
		if x != float64(float32(0.2)) {
			t.Fatalf("value %d is %v without noise", i, x)
		}
	}
}
