package score

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/stagetest"
)

// sameCurve compares the first curve on a port.
func sameCurve(t *testing.T, r stagetest.Result, port string, tolerance float64, want ...float64) {
	t.Helper()
	got, err := metric.Response(r.Facts[port], r.Payloads[port][0], "share")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d points, want %d", port, len(got), len(want))
	}
	for k, w := range want {
		if math.IsNaN(got[k]) != math.IsNaN(w) || math.Abs(got[k]-w) > tolerance {
			t.Errorf("%s: point %d is %v, want %v", port, k, got[k], w)
		}
	}
}

// TestOfficialMASCurves compares the four curves with those of the official runs in mas_rise, smallcnn_ and
// gapcnn_ .npz.
func TestOfficialMASCurves(t *testing.T) {
	arrays := golden.Arrays(t, "../internal/metric/testdata/mas_rise.npz")
	runs := 0
	for key := range arrays {
		name, ok := strings.CutSuffix(key, ".step")
		if !ok {
			continue
		}
		curves := arrays[name+".curves"]
		n, all := curves.Shape[2], curves.Float64s()
		row := func(protocol, k int) []float64 { return all[(protocol*5+k)*n : (protocol*5+k+1)*n] }
		if math.IsNaN(row(0, 4)[0]) {
			continue // the raw curve isn't stored by the official run
		}
		runs++
		base, step, _ := strings.Cut(name, "_step")
		m, err := arrays[base+".map"].Tensor()
		if err != nil {
			t.Fatal(err)
		}
		in := map[string][]stages.Data{
			"insertion": {stagetest.Items(facts("insertion", step), curve(row(0, 4)...))},
			"deletion":  {stagetest.Items(facts("deletion", step), curve(row(1, 4)...))},
			"maps":      {stagetest.Items(nil, m.Encode())},
		}
		for k, of := range []string{"score", "penalty", "density", "response"} {
			r := stagetest.Run(t, MASCurves, &MASCurvesParams{Of: of,
				MASParams: MASParams{Variant: official, Values: "signed"}}, in)
			sameCurve(t, r, "insertion", 2e-5, row(0, k)...)
			sameCurve(t, r, "deletion", 2e-5, row(1, k)...)
		}
	}
	if runs == 0 {
		t.Error("no run was compared")
	}
}

// TestMASCurvesAreThose: the areas are those that score/mas and score/rise report, and a curve without a
// score is undefined at all points.
func TestMASCurvesAreThose(t *testing.T) {
	in := map[string][]stages.Data{
		"insertion": {stagetest.Items(facts("insertion", "1"), curve(0.1, 0.5, 0.9), curve(0.5, 0.9, 0.5))},
		"deletion":  {stagetest.Items(facts("deletion", "1"), curve(0.9, 0.2, 0.1), curve(0.5, 0.9, 0.5))},
		"maps":      {stagetest.Items(nil, pixels(0.9, 0.1), pixels(1, 1))},
	}
	for of, stage := range map[string]struct {
		stages.Stage
		params any
	}{
		"score":    {MAS, &MASParams{Variant: paper, Values: "magnitude"}},
		"response": {RISE, &RISEParams{Variant: official}},
	} {
		scored := in
		if of == "response" {
			scored = map[string][]stages.Data{"insertion": in["insertion"], "deletion": in["deletion"]}
		}
		scores := stagetest.Run(t, stage.Stage, stage.params, scored)
		r := stagetest.Run(t, MASCurves, &MASCurvesParams{Of: of,
			MASParams: MASParams{Variant: paper, Values: "magnitude"}}, in)
		for _, port := range []string{"insertion", "deletion", "difference"} {
			y, err := metric.Response(r.Facts[port], r.Payloads[port][0], "share")
			if err != nil {
				t.Fatal(err)
			}
			area, _ := stages.ScalarOf(scores.Payloads[port][0])
			if !(math.Abs(metric.Area(y)-area) <= 1e-12) {
				t.Errorf("%s of %s has the area %v, and the score is %v", port, of, metric.Area(y), area)
			}
			if y, _ = metric.Response(r.Facts[port], r.Payloads[port][1], "share"); slices.ContainsFunc(y,
				isNumber) {
				t.Errorf("%s of %s is %v of an image that scores like its substrate", port, of, y)
			}
		}
	}
	fails(t, MASCurves, nil, map[string][]stages.Data{
		"insertion": {stagetest.Items(facts("insertion", "1"), curve(0, 1, 1))},
		"deletion":  {stagetest.Items(facts("deletion", "2"), curve(1, 0))},
		"maps":      {stagetest.Items(nil, pixels(1, 2))},
	}, "insertion steps by 1 pixels and deletion by 2")
}
