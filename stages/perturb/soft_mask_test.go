package perturb

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

// softInput returns the inputs of the stage for two images, with these maps.
func softInput(t *testing.T, preset string, maps ...[]float64) map[string][]stages.Data {
	t.Helper()
	in := shapesInput(t, preset)
	var payloads [][]byte
	for _, m := range maps {
		payloads = append(payloads, stages.NewTensor(m, 32, 32).Encode())
	}
	in["maps"] = []stages.Data{stagetest.Items(nil, payloads...)}
	whole := stagetest.Run(t, Response, nil, in)
	in["whole"] = []stages.Data{stagetest.Items(whole.Facts["curves"], whole.Payloads["curves"]...)}
	return in
}

// TestSoftMask checks masks and images by their definition, under presets with other means and scales, and
// that the second point is the response to the image on the port images.
func TestSoftMask(t *testing.T) {
	a, b := make([]float64, 1024), make([]float64, 1024)
	for i := range a {
		a[i], b[i] = math.Sin(float64(i)), float64(i%7)-3
	}
	for _, preset := range []string{"unit", "imagenet"} {
		in := softInput(t, preset, a, b)
		for values, relevance := range map[string]func(float64) float64{
			"magnitude": math.Abs, "signed": func(v float64) float64 { return v },
			"positive": func(v float64) float64 { return math.Max(v, 0) },
		} {
			r := stagetest.Run(t, SoftMask, &SoftMaskParams{Substrate: "black", Kernel: 11, Sigma: 11,
				Values: values}, in)
			for i, m := range [][]float64{a, b} {
				low, high := math.Inf(1), math.Inf(-1)
				for _, v := range m {
					low, high = math.Min(low, relevance(v)), math.Max(high, relevance(v))
				}
				masks, images := decode(t, r.Payloads["masks"][i]), decode(t, r.Payloads["images"][i])
				x := decode(t, payloadOf(t, in, "images", i))
				for k, got := range images {
					want := (relevance(m[k%1024]) - low) / (high - low)
					if math.Abs(masks[k%1024]-want) > 1e-12 || math.Abs(got-want*x[k]) > 1e-6 {
						t.Fatalf("%s, %s: value %d of image %d is %v "+
							"under a mask of %v, want %v of %v", preset,
							values, k, i, got, masks[k%1024], want, x[k])
					}
				}
			}
			again := in
			again["images"] = []stages.Data{stagetest.Items(nil, r.Payloads["images"]...)}
			masked := stagetest.Run(t, Response, nil, again)
			in = softInput(t, preset, a, b)
			for i := range masked.Payloads["curves"] {
				want := decode(t, masked.Payloads["curves"][i])
				whole := decode(t, payloadOf(t, in, "whole", i))
				want = []float64{whole[0], want[0], whole[1], want[1], whole[2], want[2]}
				if got := decode(t, r.Payloads["curves"][i]); !slices.Equal(got, want) {
					t.Errorf("%s, %s: the responses to "+
						"image %d are %v, want %v", preset, values, i, got, want)
				}
			}
		}
	}
}

// TestSoftMaskLaws checks that the scale and the offset of a signed map and the scale of any change nothing,
// that a map of 1 within and 0 without shows the image within and the substrate without, exactly, and that a
// constant map has no response.
func TestSoftMaskLaws(t *testing.T) {
	ramp, scaled, half, constant := make([]float64, 1024), make([]float64, 1024), make([]float64, 1024),
		make([]float64, 1024)
	for i := range ramp {
		ramp[i], scaled[i], half[i], constant[i] = float64(i), 4*float64(i)+8, float64(i/512), 3
	}
	p := &SoftMaskParams{Substrate: "zero", Kernel: 11, Sigma: 11, Values: "signed"}
	r := stagetest.Run(t, SoftMask, p, softInput(t, "imagenet", ramp, scaled))
	if !slices.Equal(decode(t, r.Payloads["masks"][0]), decode(t, r.Payloads["masks"][1])) {
		t.Error("the offset and the scale of a signed map change its mask")
	}
	in := softInput(t, "imagenet", half, constant)
	r = stagetest.Run(t, SoftMask, p, in)
	e, err := stagetest.Env(&SoftMask, in)
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	x := decode(t, payloadOf(t, in, "images", 0))
	for k, got := range decode(t, r.Payloads["images"][0]) {
		want := x[k]
		if k%1024 < 512 {
			want = float64(zero(n, k/1024))
		}
		if got != want {
			t.Fatalf("value %d is %v, want %v", k, got, want)
		}
	}
	c := decode(t, r.Payloads["curves"][1])
	if math.IsNaN(c[0]) || !math.IsNaN(c[1]) || len(r.Warnings) != 1 {
		t.Errorf("a constant map has the responses %v, and the warnings are %q", c, r.Warnings)
	}
	if !slices.Equal(decode(t, r.Payloads["images"][1]), decode(t, payloadOf(t, in, "images", 1))) {
		t.Error("a constant map changes its image")
	}
}

// payloadOf returns the payload of an item on an input port.
func payloadOf(t *testing.T, in map[string][]stages.Data, port string, i int) []byte {
	t.Helper()
	b, err := in[port][0].Load(i)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
