package score

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/stagetest"
)

var nan = math.NaN()

// facts returns the facts of curves of the perturb stages.
func facts(order, step string) stages.Facts {
	direction := stages.Higher
	if order == "deletion" || order == "morf" {
		direction = stages.Lower
	}
	return stages.Facts{"order": order, "direction": string(direction), "step_pixels": step,
		"responses": "probability,logit,correct"}
}

// curve encodes a probability curve; the other responses are derived from it.
func curve(probability ...float64) []byte {
	n := len(probability)
	all := append([]float64(nil), probability...)
	for _, p := range probability {
		all = append(all, 10*p)
	}
	for _, p := range probability {
		all = append(all, math.Round(p))
	}
	return stages.NewTensor(all, 3, n).Encode()
}

func pixels(v ...float32) []byte { return stages.NewTensor(v, 1, len(v)).Encode() }

func scalars(t *testing.T, r stages.Data) []float64 {
	t.Helper()
	var out []float64
	for i := range r.Items.Len() {
		b, err := r.Load(i)
		if err != nil {
			t.Fatal(err)
		}
		x, err := stages.ScalarOf(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

func check(t *testing.T, r stagetest.Result, port string, tolerance float64, want ...float64) {
	t.Helper()
	got := scalars(t, stagetest.Items(nil, r.Payloads[port]...))
	if len(got) != len(want) {
		t.Fatalf("%s: %d scores, want %d", port, len(got), len(want))
	}
	for i, w := range want {
		if math.IsNaN(w) != math.IsNaN(got[i]) || math.Abs(got[i]-w) > tolerance {
			t.Errorf("%s: score %d is %v, want %v", port, i, got[i], w)
		}
		m := stages.MeasureOf(r.Facts[port])
		if got[i] < m.Low || got[i] > m.High {
			t.Errorf("%s: score %d is %v, outside [%v, %v]", port, i, got[i], m.Low, m.High)
		}
	}
}

func fails(t *testing.T, s stages.Stage, params any, in map[string][]stages.Data, part string) {
	t.Helper()
	if _, err := stagetest.Try(s, params, in); err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: error %v, want one with %q", s.Name, err, part)
	}
}

func TestAUC(t *testing.T) {
	for _, c := range []struct {
		response, unit string
		want           []float64
	}{
		{"probability", "probability", []float64{0.5, 0.65}},
		{"logit", "logit", []float64{5, 6.5}},
		{"top-1", "share", []float64{0.75, 0.75}}, // of 1, 1, 0
	} {
		for order, direction := range map[string]stages.Direction{"deletion": stages.Lower,
			"morf": stages.Lower, "insertion": stages.Higher, "lerf": stages.Higher} {
			r := stagetest.Run(t, AUC, &AUCParams{Response: c.response}, map[string][]stages.Data{
				"curves": {stagetest.Items(facts(order, "1"), curve(1, 0.5, 0), curve(0.9, 0.7, 0.3))},
			})
			check(t, r, "scores", 1e-12, c.want...)
			if m := stages.MeasureOf(r.Facts["scores"]); m.Direction != direction || m.Unit != c.unit {
				t.Errorf("%s, %s: %+v", c.response, order, m)
			}
		}
	}
	bad := facts("morf", "1")
	bad["responses"] = "probability,logit,other"
	fails(t, AUC, &AUCParams{Response: "top-1"},
		map[string][]stages.Data{"curves": {stagetest.Items(bad, curve(1, 0))}},
		`"item-0": there is no response "correct"`)
	bad["responses"] = "probability"
	fails(t, AUC, nil, map[string][]stages.Data{"curves": {stagetest.Items(bad, curve(1, 0))}},
		`responses of shape [3 2] aren't those of the rows "probability"`)
}

// TestMASUndefined checks that a score without a value is undefined by default, and 0.5 in the official
// variant.
func TestMASUndefined(t *testing.T) {
	in := map[string][]stages.Data{
		"insertion": {stagetest.Items(facts("insertion", "1"), curve(0, 0.5, 1), curve(0, 0.5, 1),
			curve(0.5, 0.9, 0.5), curve(0, 0.9, 1))},
		"deletion": {stagetest.Items(facts("deletion", "1"), curve(1, 0.5, 0), curve(1, 0.5, 0),
			curve(0.5, 0.9, 0.5), curve(1, 0.1, 0))},
		"maps": {stagetest.Items(nil, pixels(1, 1), pixels(0, 0), pixels(1, 1), pixels(0.9, 0.1))},
	}
	r := stagetest.Run(t, MAS, nil, in)
	check(t, r, "insertion", 1e-6, 0.5, nan, nan, 0.7)
	check(t, r, "deletion", 1e-6, 0.5, nan, nan, 0.3)
	check(t, r, "difference", 1e-6, 0, nan, nan, 0.4)
	if v := r.Facts["insertion"]["variant"]; v != "" {
		t.Errorf("the default variant is called %q", v)
	}

	r = stagetest.Run(t, MAS, &MASParams{Variant: official, Values: "magnitude"}, in)
	// The third image scores like its substrate: 0/0, ∞, 0/0 become 0, 1, 1 for insertion, minus a penalty of
	// 0, ½, 0; for deletion they stay 1, and the penalised curve is constant after clipping.
	check(t, r, "insertion", 1e-6, 0.5, 0.5, 0.5, 0.7)
	check(t, r, "deletion", 1e-6, 0.5, 0.5, 0.5, 0.3)
	if v := r.Facts["difference"]["variant"]; v != "official" {
		t.Errorf("the official variant is called %q", v)
	}
}

func TestMASRefuses(t *testing.T) {
	in := func(insertion, deletion stages.Facts, m []byte) map[string][]stages.Data {
		return map[string][]stages.Data{
			"insertion": {stagetest.Items(insertion, curve(0, 0.5, 1))},
			"deletion":  {stagetest.Items(deletion, curve(1, 0.5, 0))},
			"maps":      {stagetest.Items(nil, m)},
		}
	}
	ins, del := facts("insertion", "2"), facts("deletion", "2")
	fails(t, MAS, nil, in(ins, del, pixels(1, 2)),
		`item "item-0": insertion: a curve of 3 points doesn't match a map of 1×2 pixels`)
	fails(t, MAS, nil, in(del, ins, pixels(1, 2, 3)),
		`the input "insertion" needs curves of insertion, not of "deletion"`)
	fails(t, MAS, nil, in(facts("insertion", ""), del, pixels(1, 2, 3)), "different numbers of pixels")
	fails(t, RISE, nil, in(ins, facts("morf", "2"), nil),
		`the input "deletion" needs curves of deletion, not of "morf"`)
}

func TestRISE(t *testing.T) {
	in := map[string][]stages.Data{
		"insertion": {stagetest.Items(facts("insertion", "1"), curve(0.2, 0.1, 0.6))},
		"deletion":  {stagetest.Items(facts("deletion", "1"), curve(0.6, 0.5, 0.2))},
	}
	r := stagetest.Run(t, RISE, nil, in)
	check(t, r, "insertion", 1e-12, 0.25)
	check(t, r, "deletion", 1e-12, 0.45)
	check(t, r, "difference", 1e-12, -0.2)
	for port, want := range map[string]stages.Measure{
		"insertion": {Unit: "probability", Direction: stages.Higher, Low: 0, High: 1, Tolerance: 1e-3,
			ItemTolerance: 0.02},
		"deletion": {Unit: "probability", Direction: stages.Lower, Low: 0, High: 1, Tolerance: 1e-3,
			ItemTolerance: 0.02},
		"difference": {Unit: "probability", Direction: stages.Higher, Low: -1, High: 1, Tolerance: 2e-3,
			ItemTolerance: 0.04},
	} {
		if got := stages.MeasureOf(r.Facts[port]); got != want {
			t.Errorf("%s means %+v, want %+v", port, got, want)
		}
	}
	r = stagetest.Run(t, RISE, &RISEParams{Variant: official}, in)
	check(t, r, "insertion", 1e-12, 0.25) // 0, 0, 1
	check(t, r, "deletion", 1e-12, 0.625) // 1, ¾, 0
}

// TestUndefinedCurves checks that an undefined curve, that of a map without an order, has no score and
// doesn't affect others.
func TestUndefinedCurves(t *testing.T) {
	in := map[string][]stages.Data{
		"insertion": {stagetest.Items(facts("insertion", "1"), curve(nan, nan, nan), curve(0, 0.5, 1))},
		"deletion":  {stagetest.Items(facts("deletion", "1"), curve(nan, nan, nan), curve(1, 0.5, 0))},
		"maps":      {stagetest.Items(nil, pixels(1, float32(nan)), pixels(1, 1))},
	}
	for _, variant := range []string{paper, official} {
		r := stagetest.Run(t, RISE, &RISEParams{Variant: variant}, in)
		check(t, r, "insertion", 1e-12, nan, 0.5)
		check(t, r, "deletion", 1e-12, nan, 0.5)
		check(t, r, "difference", 1e-12, nan, 0)
	}
	r := stagetest.Run(t, MAS, nil, in)
	check(t, r, "difference", 1e-12, nan, 0)
	for _, response := range []string{"probability", "logit", "top-1"} {
		r := stagetest.Run(t, AUC, &AUCParams{Response: response},
			map[string][]stages.Data{"curves": in["insertion"]})
		if got := scalars(t, stagetest.Items(nil, r.Payloads["scores"]...)); !math.IsNaN(got[0]) ||
			math.IsNaN(got[1]) {
			t.Errorf("areas of the %s: %v, want the first undefined", response, got)
		}
	}
}

// TestMASOfConstantMaps checks that a constant map, which has no order, has no score in any variant; that the
// official ½ is only for maps without a total; and that a curve along a random order has a score.
func TestMASOfConstantMaps(t *testing.T) {
	in := map[string][]stages.Data{
		"insertion": {stagetest.Items(facts("insertion", "1"), curve(nan, nan, nan), curve(nan, nan, nan),
			curve(0, 0.5, 1))},
		"deletion": {stagetest.Items(facts("deletion", "1"), curve(nan, nan, nan), curve(nan, nan, nan),
			curve(1, 0.5, 0))},
		"maps": {stagetest.Items(nil, pixels(3, 3), pixels(0, 0), pixels(3, 3))},
	}
	for variant, zero := range map[string]float64{paper: nan, official: 0.5} {
		r := stagetest.Run(t, MAS, &MASParams{Variant: variant, Values: "magnitude"}, in)
		check(t, r, "insertion", 1e-12, nan, zero, 0.5)
		check(t, r, "deletion", 1e-12, nan, zero, 0.5)
	}
}

// TestGoldenScores runs the stages on the raw curves of the official runs in mas_rise, smallcnn_ and gapcnn_
// .npz, and compares with the official scores.
func TestGoldenScores(t *testing.T) {
	arrays := golden.Arrays(t, "../internal/metric/testdata/mas_rise.npz")
	runs := 0
	for key := range arrays {
		name, ok := strings.CutSuffix(key, ".step")
		if !ok {
			continue
		}
		curves := arrays[name+".curves"]
		n := curves.Shape[2]
		all := curves.Float64s()
		raw := func(protocol int) []float64 { return all[(protocol*5+4)*n : (protocol*5+5)*n] }
		if math.IsNaN(raw(0)[0]) {
			continue // not stored by the official run
		}
		runs++
		base, step, _ := strings.Cut(name, "_step")
		m, err := arrays[base+".map"].Tensor()
		if err != nil {
			t.Fatal(err)
		}
		in := map[string][]stages.Data{
			"insertion": {stagetest.Items(facts("insertion", step), curve(raw(0)...))},
			"deletion":  {stagetest.Items(facts("deletion", step), curve(raw(1)...))},
		}
		area := arrays[name+".areas"].Float64s() // [insertion, deletion] × [mas, rise_norm, rise_raw]

		r := stagetest.Run(t, RISE, nil, in)
		check(t, r, "insertion", 1e-12, area[2])
		check(t, r, "deletion", 1e-12, area[5])
		r = stagetest.Run(t, RISE, &RISEParams{Variant: official}, in)
		check(t, r, "insertion", 2e-6, area[1])
		check(t, r, "deletion", 2e-6, area[4])

		in["maps"] = []stages.Data{stagetest.Items(nil, m.Encode())}
		r = stagetest.Run(t, MAS, &MASParams{Variant: official, Values: "signed"}, in)
		check(t, r, "insertion", 2e-5, area[0])
		check(t, r, "deletion", 2e-5, area[3])
		check(t, r, "difference", 4e-5, area[0]-area[3])

		want := area[0]
		if strings.Contains(name, "zero") {
			want = nan
		}
		r = stagetest.Run(t, MAS, &MASParams{Variant: paper, Values: "signed"}, in)
		check(t, r, "insertion", 2e-5, want)
		if t.Failed() {
			t.Fatalf("in run %q", name)
		}
	}
	if runs != 34 {
		t.Errorf("compared %d runs, want 34", runs)
	}
}

func TestMassAccuracy(t *testing.T) {
	mask := func(v ...uint8) []byte { return stages.NewTensor(v, 1, len(v)).Encode() }
	in := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, pixels(1, 2, -5), pixels(-1, -1, 0), pixels(1, 1, 1),
			stages.NewTensor([]float32{1, 1, 1, 1, -3, 1}, 2, 1, 3).Encode())},
		"masks": {stagetest.Items(nil, mask(0, 1, 1), mask(1, 0, 0), mask(1, 0, 0), mask(1, 1, 0))},
	}
	r := stagetest.Run(t, MassAccuracy, nil, in)
	check(t, r, "scores", 1e-12, 2.0/3, nan, 1.0/3, 0.5) // channel sums 2, −2, 2
	r = stagetest.Run(t, MassAccuracy, &MassAccuracyParams{Values: "magnitude"}, in)
	check(t, r, "scores", 1e-12, 7.0/8, 0.5, 1.0/3, 2.0/3)
	in["masks"] = []stages.Data{stagetest.Items(nil, mask(0, 1), mask(1), mask(1), mask(1))}
	fails(t, MassAccuracy, nil, in, `item "item-0": a mask of u8 [1 2] doesn't match a map of 1×3 pixels`)
}

func TestTop1(t *testing.T) {
	is := func(v ...int64) []byte { return stages.NewTensor(v, len(v)).Encode() }
	r := stagetest.Run(t, Top1, nil, map[string][]stages.Data{
		"labels":  {stagetest.Items(nil, is(3), is(0), is(7))},
		"targets": {stagetest.Items(nil, is(3), is(1), is(7))},
	})
	check(t, r, "scores", 0, 1, 0, 1)
	fails(t, Top1, nil, map[string][]stages.Data{
		"labels":  {stagetest.Items(nil, is(3))},
		"targets": {stagetest.Items(nil, is(3, 4))},
	}, `item "item-0": prediction: i64 of shape [2] isn't one class`)
	for classes, want := range map[string]float64{"4": 0.25, "2": 0.5, "": 0} {
		f, err := Top1.Facts(Top1.NewParams(), map[string]stages.Facts{"model": {"classes": classes}})
		if err != nil || stages.MeasureOf(f["scores"]).Chance != want {
			t.Errorf("%q classes: %v, %v; guessing gives %g", classes, f, err, want)
		}
	}
}

// TestTop1OfOneOutput checks that a model with one output predicts label 1 from the threshold on, and that
// other labels are errors; and that the threshold is ignored, with a warning, of other models.
func TestTop1OfOneOutput(t *testing.T) {
	is := func(v ...int64) []byte { return stages.NewTensor(v, len(v)).Encode() }
	in := map[string][]stages.Data{
		"model":   {stagetest.Value(stages.Facts{"classes": "2", "outputs": "1"}, nil)},
		"labels":  {stagetest.Items(nil, is(1), is(1), is(0), is(0))},
		"targets": {stagetest.Items(nil, is(1), is(0), is(0), is(1))},
		"probability": {stagetest.Items(nil, stages.Scalar(0.5), stages.Scalar(0.6), stages.Scalar(0.75),
			stages.Scalar(0.9))},
	}
	check(t, stagetest.Run(t, Top1, nil, in), "scores", 0, 1, 0, 1, 0)
	check(t, stagetest.Run(t, Top1, &Top1Params{Threshold: 0.3}, in), "scores", 0, 1, 1, 1, 0)
	check(t, stagetest.Run(t, Top1, &Top1Params{Threshold: 0.25}, in), "scores", 0, 1, 1, 0, 0)
	check(t, stagetest.Run(t, Top1, &Top1Params{Threshold: 0.95}, in), "scores", 0, 0, 0, 1, 1)
	in["model"] = []stages.Data{stagetest.Value(stages.Facts{"classes": "2"}, nil)}
	r := stagetest.Run(t, Top1, &Top1Params{Threshold: 0.3}, in)
	check(t, r, "scores", 0, 1, 0, 1, 0)
	if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "threshold is ignored") {
		t.Errorf("warnings %v", r.Warnings)
	}
	in["labels"] = []stages.Data{stagetest.Items(nil, is(1), is(2), is(0), is(0))}
	fails(t, Top1, nil, in,
		`item "item-1": the label is 2, but the model has 2 classes, 0 to 1: `+
			`the data set's classes must be the `+
			`model's, in its order; its parameters names and first set it`)
}

// TestOrderIsThatOfRanks checks that score/mas accumulates a map in the order in which the perturbation
// stages, through maps/rank, remove its pixels.
func TestOrderIsThatOfRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		v := make([]float32, 3*4*5)
		for i := range v {
			v[i] = float32(r.IntN(5)-2) / 10 // many ties, and sums that round
		}
		m := stages.NewTensor(v, 3, 4, 5)
		for _, how := range []string{"magnitude", "signed"} {
			got := stagetest.Run(t, maps.Rank, &maps.RankParams{Values: how, Ties: "index"},
				map[string][]stages.Data{"maps": {stagetest.Items(nil, m.Encode())}})
			ranks, err := stages.DecodeTensor(got.Payloads["ranks"][0])
			if err != nil {
				t.Fatal(err)
			}
			values, _, _, err := metric.Values(m, how)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]uint32, len(values))
			for place, i := range metric.Order(values) {
				want[i] = uint32(place)
			}
			if !slices.Equal(ranks.Uint32s(), want) {
				t.Fatalf("%s: maps/rank returns %v, this package %v", how, ranks.Uint32s(), want)
			}
		}
	}
}
