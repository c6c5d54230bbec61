package score

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// drawn returns the inputs of a metric of robustness: the map of an image, and map and image of every draw.
// Images have as many pixels as their first values.
func drawn(a, x []float64, draws ...[2][]float64) map[string][]stages.Data {
	item := func(v []float64) stages.Data {
		return stagetest.Items(nil, stages.NewTensor(v, 1, len(v)).Encode())
	}
	in := map[string][]stages.Data{"maps": {item(a)}, "images": {item(x)}}
	for k, d := range draws {
		at := fmt.Sprintf("d%d", k)
		in["draws"] = append(in["draws"], stagetest.At(item(d[0]), "draw", at))
		in["noisy"] = append(in["noisy"], stagetest.At(item(d[1]), "draw", at))
	}
	return in
}

// TestRobustnessByHand has maps of two pixels scored by hand.
func TestRobustnessByHand(t *testing.T) {
	a, x := []float64{3, 4}, []float64{0, 0}
	near := [2][]float64{{3, 4.5}, {0.3, 0.4}} // changes of 0.5 in the map, 0.5 in the image
	far := [2][]float64{{6, 8}, {1, 0}}        // 5 and 1
	same := [2][]float64{{3, 5}, {0, 0}}
	zeros := []float64{0, 0}
	nan := math.NaN()
	lipschitz := func(normalise, variant string) any {
		return &LipschitzParams{DrawParams{Values: "signed", Variant: variant}, normalise}
	}
	sensitivity := func(relative bool, variant string) any {
		return &SensitivityParams{DrawParams{Values: "signed", Variant: variant}, relative}
	}
	for _, c := range []struct {
		name   string
		stage  stages.Stage
		params any
		in     map[string][]stages.Data
		port   string
		want   float64
	}{
		{"the larger of two", Lipschitz, lipschitz("none", "paper"), drawn(a, x, near, far), "scores", 5},
		{"the larger of two, first", Lipschitz, lipschitz("none", "paper"), drawn(a, x, far, near), "scores",
			5},
		// (3/4, 1) and (2/3, 1), 0.5 apart.
		{"normalised", Lipschitz, nil, drawn(a, x, near), "scores", (3./4 - 2./3) / 0.5},
		{"twice the map", Lipschitz, nil, drawn(a, x, far), "scores", 0},
		{"the same image", Lipschitz, nil, drawn(a, x, near, same), "scores", nan},
		{"the same image, official", Lipschitz, lipschitz("none", "official"), drawn(a, x, same), "scores",
			1e10},
		{"a map of zeros", Lipschitz, nil, drawn(zeros, x, near), "scores", nan},
		{"a constant map", Lipschitz, nil, drawn([]float64{1, 1}, x, [2][]float64{{2, 2}, {1, 1}}), "scores",
			0},
		{"the largest change", Sensitivity, nil, drawn(a, x, near, far), "max", 1},
		{"the mean change", Sensitivity, nil, drawn(a, x, near, far), "average", 2.75 / 5},
		{"absolute", Sensitivity, sensitivity(false, "paper"), drawn(a, x, near, far), "average", 2.75},
		{"zeros", Sensitivity, nil, drawn(zeros, x, near), "max", nan},
		{"zeros, official", Sensitivity, sensitivity(true, "official"), drawn(zeros, x, far), "max", 10},
		{"a constant map's changes", Sensitivity, nil,
			drawn([]float64{1, 1}, x, [2][]float64{{1, 1}, {1, 0}}), "max", 0},
	} {
		if c.stage.Name == Sensitivity.Name {
			delete(c.in, "images")
			delete(c.in, "noisy")
		}
		r := stagetest.Run(t, c.stage, c.params, c.in)
		got := scalars(t, stagetest.Items(nil, r.Payloads[c.port]...))[0]
		if !(math.Abs(got-c.want) <= 1e-12*max(1, c.want)) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		measure := stages.MeasureOf(r.Facts[c.port])
		if n := fmt.Sprintf("%d draws", len(c.in["draws"])); !strings.Contains(measure.Variant, n) {
			t.Errorf("%s: the measure is called %q, and there are %s", c.name, measure.Variant, n)
		}
	}
}

// TestRandomMapsAreNotRobust holds that maps that have nothing to do with each other change as much as two
// independent ones do: by √2 of their norm, if their mean is 0.
func TestRandomMapsAreNotRobust(t *testing.T) {
	const n = 4096
	field := func(seed int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Sin(float64((i+1)*(seed+3)) * 12.9898)
		}
		return v
	}
	in := drawn(field(0), field(0), [2][]float64{field(1), field(0)}, [2][]float64{field(2), field(0)})
	delete(in, "images")
	delete(in, "noisy")
	r := stagetest.Run(t, Sensitivity, nil, in)
	if got := scalars(t, stagetest.Items(nil, r.Payloads["average"]...))[0]; math.Abs(got-math.Sqrt2) > 0.05 {
		t.Errorf("got %v, want √2", got)
	}
}

// TestOfficialLipschitz holds the ratio of every draw, and the largest of each image, against Quantus' with
// maps of input × gradient, normalised over the batch as there.
func TestOfficialLipschitz(t *testing.T) {
	a := golden.Arrays(t, golden.Dir(t)+"/lipschitz/lipschitz.npz")
	const images, draws, size = 3, 5, 3 * 32 * 32
	model := modeltest.Official(t, "smallcnn", 0)
	params := attribute.InputXGradient.NewParams()
	mapsOf := func(x []float32) (maps [images][]float64, most float64) {
		var payloads, targets [][]byte
		for k := range images {
			payloads = append(payloads,
				stages.NewTensor(x[k*size:(k+1)*size], 3, 32, 32).Encode())
			targets = append(targets, stages.NewTensor(a["y"].Int64s()[k:k+1], 1).Encode())
		}
		r := stagetest.Run(t, attribute.InputXGradient, params, map[string][]stages.Data{
			"model": {model}, "images": {stagetest.Items(nil, payloads...)},
			"targets": {stagetest.Items(nil, targets...)}})
		for k, b := range r.Payloads["maps"] {
			v, err := DrawParams{Values: "signed"}.values(b)
			if err != nil {
				t.Fatal(err)
			}
			maps[k] = v
			for _, x := range v {
				most = math.Max(most, math.Abs(x))
			}
		}
		return maps, most
	}
	x := a["x"].Float32s()
	originals, largest := mapsOf(x)
	p := LipschitzParams{DrawParams{Values: "signed", Variant: official}, "none"}
	scores := [images]float64{}
	for d := range draws {
		y := make([]float32, len(x))
		for i, noise := range a["noise"].Float32s()[d*images*size : (d+1)*images*size] {
			y[i] = x[i] + noise
		}
		noisy, most := mapsOf(y)
		for k := range images {
			scaled := func(v []float64, by float64) []float64 {
				out := make([]float64, len(v))
				for i := range v {
					out[i] = v[i] / by
				}
				return out
			}
			wide := func(v []float32) (out []float64) {
				for _, x := range v[k*size : (k+1)*size] {
					out = append(out, float64(x))
				}
				return out
			}
			got := p.ratio(scaled(originals[k], largest), scaled(noisy[k], most), wide(x), wide(y))
			want := a["manual"].Float64s()[d*images+k]
			if !(math.Abs(got-want) <= 1e-5*want) {
				t.Errorf("draw %d of image %d: %v, want %v", d, k, got, want)
			}
			scores[k] = max(scores[k], got)
		}
	}
	for k, want := range a["scores"].Float64s() {
		if !(math.Abs(scores[k]-want) <= 1e-5*want) {
			t.Errorf("image %d: %v, want %v", k, scores[k], want)
		}
	}
}
