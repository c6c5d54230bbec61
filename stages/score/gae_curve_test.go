package score

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/stagetest"
)

// gaeCurves returns the curves of one image, by quantity and sequence.
func gaeCurves(t *testing.T, variant string, in map[string][]stages.Data) map[string][]float64 {
	t.Helper()
	curves := map[string][]float64{}
	for _, of := range []string{"output", "similarity"} {
		for _, curve := range []string{"morf", "lerf", "difference"} {
			p := GAECurve.NewParams().(*GAECurveParams)
			p.Of, p.Curve, p.Variant = of, curve, variant
			r := stagetest.Run(t, GAECurve, p, in)
			got, err := stages.DecodeTensor(r.Payloads["curves"][0])
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Shape) != 2 || got.Shape[0] != 1 || r.Facts["curves"]["responses"] != "share" {
				t.Errorf("a curve of shape %v, with the facts %v", got.Shape, r.Facts["curves"])
			}
			curves[of+" "+curve] = got.Float64s()
		}
	}
	return curves
}

// TestGAECurves compares curves of maps of three pixels with numbers by hand, and the robustness that
// equation 14 makes of their differences with that of score/gae.
func TestGAECurves(t *testing.T) {
	item := func(v ...float32) stages.Data {
		return stagetest.Items(nil, stages.NewTensor(v, 1, len(v)).Encode())
	}
	at := func(order, step string, v ...float32) stages.Data {
		return stagetest.At(item(v...), "order", order, "step", step)
	}
	in := map[string][]stages.Data{
		"maps": {item(4, 2, -1)},
		"masked_maps": {at("morf", "1", 0, 2, 0), at("morf", "2", 0, 0, 3), at("lerf", "1", 8, 4, -8),
			at("lerf", "2", 2, 2, 0)},
		"outputs": {stagetest.Items(stages.Facts{"responses": "morf,lerf", "shares": "0,0.4,0.8"},
			stages.NewTensor([]float64{8, 4, 2, 8, 10, 6}, 2, 3).Encode())},
	}
	got := gaeCurves(t, paper, in)
	for name, want := range map[string][]float64{
		"output morf": {1, 0.5, 0.25}, "output lerf": {1, 1.25, 0.75}, "output difference": {0, 0.75, 0.5},
		"similarity morf": {1, 1 - 1.5/2.5, 0}, "similarity lerf": {1, 1, 1 - 0.5/3.5},
		"similarity difference": {0, 1.5 / 2.5, 1 - 0.5/3.5},
	} {
		for k := range want {
			if math.Abs(got[name][k]-want[k]) > 1e-7 {
				t.Errorf("%s is %v, want %v", name, got[name], want)
				break
			}
		}
	}
	r := stagetest.Run(t, GAECurve, nil, in)
	if s := r.Facts["curves"]["shares"]; s != "0,0.4,0.8" {
		t.Errorf("the shares are %q", s)
	}
	difference, sum := 0.0, 0.0
	for k, o := range got["output difference"] {
		a := got["similarity difference"][k]
		difference += math.Abs(o - a)
		sum += math.Abs(o) + math.Abs(a)
	}
	in["mosaic_maps"], in["impact"], in["scoring"] = in["maps"], in["maps"], in["maps"]
	robustness, err := stages.ScalarOf(stagetest.Run(t, GAE, nil, in).Payloads["robustness"][0])
	if err != nil || math.Abs(robustness-(1-2*difference/sum)) > 1e-7 {
		t.Errorf("robustness is %v, of the curves %v, %v", robustness, 1-2*difference/sum, err)
	}
}

// TestOfficialGAECurves compares the differences of outputs with those of the official code.
func TestOfficialGAECurves(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "gae", "smallcnn_bs4.npz"))
	morf, lerf, want := a["morf_o"].Float64s(), a["lerf_o"].Float64s(), a["abslrp_out_diffs"].Float64s()
	rng := rand.New(rand.NewPCG(1, 2))
	drawn := func() stages.Data {
		v := []float32{rng.Float32(), rng.Float32()}
		return stagetest.Items(nil, stages.NewTensor(v, 1, 2).Encode())
	}
	outputs := stages.NewTensor(slices.Concat(morf, lerf), 2, len(morf)).Encode()
	in := map[string][]stages.Data{"maps": {drawn()},
		"outputs": {stagetest.Items(stages.Facts{"responses": "morf,lerf"}, outputs)}}
	for _, order := range gaeOrders {
		for step := 1; step < len(morf); step++ {
			in["masked_maps"] = append(in["masked_maps"],
				stagetest.At(drawn(), "order", order, "step", strconv.Itoa(step)))
		}
	}
	got := gaeCurves(t, official, in)["output difference"]
	if len(want) == len(got)-1 {
		got = got[1:]
	}
	if len(got) != len(want) {
		t.Fatalf("%d differences, want %d", len(got), len(want))
	}
	for k := range want {
		if math.Abs(got[k]-want[k]) > 1e-5 {
			t.Errorf("difference %d is %v, want %v", k, got[k], want[k])
		}
	}
}
