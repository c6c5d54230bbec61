package score

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// information is the input of score/pic for one image.
func information(variant string, lengths, probability, correct []float64) map[string][]stages.Data {
	f := stages.Facts{"responses": "probability,logit,correct", "order": "information", "direction": "higher"}
	if variant == official {
		f["variant"] = variant
	}
	n := len(probability)
	all := slices.Concat(probability, make([]float64, n), correct)
	return map[string][]stages.Data{
		"curves": {stagetest.Items(f, stages.NewTensor(all, 3, n).Encode())},
		"lengths": {stagetest.Items(stages.Facts{"responses": "bytes"},
			stages.NewTensor(lengths, 1, len(lengths)).Encode())},
	}
}

// TestInformationCurve checks areas by hand, the best and the worst, and points out of order.
func TestInformationCurve(t *testing.T) {
	for _, c := range []struct {
		entropies, responses []float64
		area                 float64
	}{
		{[]float64{0.5}, []float64{0.5}, 0.5},
		{[]float64{0.25}, []float64{0.75}, 0.25*0.75/2 + 0.75*(0.75+1)/2},
		{[]float64{0.2, 0.6}, []float64{0.5, 0.1}, 0.2*0.25 + 0.4*0.5 + 0.4*0.75}, // responses only rise
		{[]float64{0.6, 0.2}, []float64{0.5, 0.1}, 0.2*0.25 + 0.4*0.5 + 0.4*0.75}, // in order of thresholds
		{[]float64{1, 1, 1}, []float64{1, 1, 1}, 0.5},                             // a constant map's
		{nil, nil, 0.5},
	} {
		curve := metric.InformationCurve(c.entropies, c.responses)
		if a := metric.Area(curve); math.Abs(a-c.area) > 1e-9 {
			t.Errorf("%v over %v: area %v, want %v", c.responses, c.entropies, a, c.area)
		}
		if curve[0] != 0 || curve[1000] != 1 || !slices.IsSorted(curve) {
			t.Errorf("%v over %v: from %v to %v, or not rising", c.responses, c.entropies, curve[0],
				curve[1000])
		}
	}
	// All at once without information, and nothing before all of it.
	best := metric.Area(metric.InformationCurve([]float64{1e-9}, []float64{1}))
	worst := metric.Area(metric.InformationCurve([]float64{1 - 1e-9}, []float64{0}))
	if math.Abs(best-0.9995) > 1e-6 || math.Abs(worst-0.0005) > 1e-6 { // one of a thousand steps is the rise
		t.Errorf("the best area is %v, the worst %v", best, worst)
	}
}

// TestPIC checks the scores of an image by hand, and those that are undefined.
func TestPIC(t *testing.T) {
	nan := math.NaN()
	lengths := []float64{100, 150, 300} // normalised: ¼
	for _, c := range []struct {
		name                 string
		p                    PICParams
		probability, correct []float64
		lengths              []float64
		sic, aic             float64
	}{
		{"defined", PICParams{true, 0.8, paper}, []float64{0.1, 0.7, 0.9}, []float64{0, 1, 1}, lengths,
			0.25*0.75/2 + 0.75*(0.75+1)/2, 0.25/2 + 0.75},
		{"not confident", PICParams{true, 0.95, paper}, []float64{0.1, 0.7, 0.9}, []float64{0, 1, 1}, lengths,
			nan, 0.25/2 + 0.75},
		{"wrong", PICParams{true, 0.8, paper}, []float64{0.1, 0.7, 0.9}, []float64{0, 0, 0}, lengths,
			0.25*0.75/2 + 0.75*(0.75+1)/2, nan},
		{"probable start", PICParams{true, 0.8, paper}, []float64{0.95, 0.7, 0.9}, []float64{1, 1, 1},
			lengths, nan, nan},
		{"long start", PICParams{true, 0.8, paper}, []float64{0.1, 0.7, 0.9}, []float64{0, 1, 1},
			[]float64{300, 150, 300}, nan, nan},
		{"equal lengths", PICParams{false, 0, official}, []float64{0.1, 0.7, 0.9}, []float64{0, 1, 1},
			[]float64{300, 150, 300}, nan, nan},
		{"equal responses", PICParams{false, 0, paper}, []float64{0.9, 0.7, 0.9}, []float64{1, 1, 1}, lengths,
			nan, nan},
		{"long start, no filter", PICParams{false, 0, paper}, []float64{0.1, 0.7, 0.9}, []float64{0, 1, 1},
			[]float64{400, 350, 300}, 0.5*0.75/2 + 0.5*(0.75+1)/2, 0.5/2 + 0.5},
		{"no order", PICParams{true, 0.8, paper}, []float64{0.1, nan, 0.9}, []float64{0, nan, 1}, lengths,
			nan, nan},
		{"ends of probabilities", PICParams{false, 0, official}, []float64{0.1, 0.7, 0.9}, []float64{0, 1, 1},
			lengths, 0.25*0.75/2 + 0.75*(0.75+1)/2, 0.25/2 + 0.75},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.p
			r := stagetest.Run(t, PIC, &p, information(p.Variant, c.lengths, c.probability, c.correct))
			check(t, r, "sic", 1e-9, c.sic)
			check(t, r, "aic", 1e-9, c.aic)
			undefined := 0
			for _, x := range []float64{c.sic, c.aic} {
				if math.IsNaN(x) {
					undefined++
				}
			}
			if len(r.Warnings) != undefined {
				t.Errorf("%d warnings of %d undefined scores: %q", len(r.Warnings), undefined, r.Warnings)
			}
			if m := stages.MeasureOf(r.Facts["sic"]); m.Direction != stages.Higher ||
				m.Variant != tag(p.Variant) {
				t.Errorf("%+v", m)
			}
			all := stagetest.Run(t, PICCurve, nil, map[string][]stages.Data{
				"curves": {stagetest.Items(r.Facts["curves"], r.Payloads["curves"]...)}})
			check(t, all, "sic", 1e-9, c.sic)
			if m := stages.MeasureOf(all.Facts["sic"]); m.Variant != tag(p.Variant) {
				t.Errorf("of all images: %+v", m)
			}
		})
	}
	in := information(official, lengths, []float64{0, 0.5, 1}, []float64{0, 1, 1})
	fails(t, PIC, nil, in, "variant is paper, but the curves were made with variant: official")
	in = information(paper, lengths[:2], []float64{0, 0.5, 1}, []float64{0, 1, 1})
	fails(t, PIC, nil, in, "a curve of 3 points doesn't match 2 lengths")
	in["curves"] = []stages.Data{stagetest.Items(facts("morf", "1"), curve(1, 0.5, 0))}
	fails(t, PIC, nil, in, "needs curves of perturb/pic")
	of := stages.Facts{"responses": "value", "order": "information", "target": "segmentation(1)"}
	in["curves"] = []stages.Data{stagetest.Items(of, stages.NewTensor([]float64{0, 0.5, 1}, 1, 3).Encode())}
	fails(t, PIC, nil, in, "these are of the expression segmentation(1)")
}

// TestPICLaws checks that the scores don't depend on the unit of lengths, nor on that of responses where no
// threshold does, and that they reach the area of chance for a random map in the mean: responses that rise
// with the information.
func TestPICLaws(t *testing.T) {
	p := &PICParams{false, 0, paper}
	lengths, response := []float64{100, 130, 200, 300}, []float64{0.125, 0.25, 0.5, 0.75}
	score := func(lengths, response []float64) [][]byte {
		return stagetest.Run(t, PIC, p, information(paper, lengths, response, response)).Payloads["sic"]
	}
	scaled := func(v []float64, by float64) (out []float64) {
		for _, x := range v {
			out = append(out, x*by)
		}
		return out
	}
	one := score(lengths, response)
	for _, by := range []float64{0.25, 2, 1024} {
		if s := score(scaled(lengths, by), response); !slices.Equal(s[0], one[0]) {
			t.Errorf("lengths × %v give another score", by)
		}
		if s := score(lengths, scaled(response, by)); !slices.Equal(s[0], one[0]) {
			t.Errorf("responses × %v give another score", by)
		}
	}
	// A response in proportion to the information has the area ½.
	r := stagetest.Run(t, PIC, p, information(paper, []float64{0, 1, 2, 4}, []float64{0, 0.25, 0.5, 1},
		[]float64{0, 0, 1, 1}))
	check(t, r, "sic", 1e-12, 0.5)
}

// TestOfficialInformationCurve compares with the authors' interpolation of points, some of them out of order
// or at the same place.
func TestOfficialInformationCurve(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "pic", "interp_cases.npz"))
	for i := range 6 {
		got := metric.InformationCurve(a[fmt.Sprint("ent", i)].Float64s(),
			a[fmt.Sprint("pred", i)].Float64s())
		near(t, fmt.Sprint("case ", i), got, a[fmt.Sprint("curve_y", i)], 1e-12)
		near(t, fmt.Sprint("area ", i), []float64{metric.Area(got)}, a[fmt.Sprint("auc", i)], 1e-12)
	}
}

func near(t *testing.T, what string, got []float64, want npy.Array, tolerance float64) {
	t.Helper()
	w := want.Float64s()
	if len(got) != len(w) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(w))
	}
	for k := range w {
		if !(math.Abs(got[k]-w[k]) <= tolerance) {
			t.Fatalf("%s: number %d is %v, want %v", what, k, got[k], w[k])
		}
	}
}

// TestOfficialPIC compares scores and curves with those of the code of MAS, of its lengths and probabilities,
// image by image and for all.
func TestOfficialPIC(t *testing.T) {
	for _, net := range []string{"smallcnn", "gapcnn"} {
		var curves [][]byte
		for i := range 4 {
			name := fmt.Sprintf("mas_%s_img%d.npz", net, i)
			a := golden.Arrays(t, filepath.Join(golden.Dir(t), "pic", name))
			all, target := a["softmax"].Float64s(), int(a["target"].Int64s()[0])
			var probability, correct []float64
			for k := range 15 {
				row := all[10*k : 10*k+10]
				probability = append(probability, row[target])
				correct = append(correct, 0)
				if slices.Index(row, slices.Max(row)) == target {
					correct[k] = 1
				}
			}
			r := stagetest.Run(t, PIC, &PICParams{false, 0, official},
				information(official, a["webp_len"].Float64s(), probability, correct))
			check(t, r, "sic", 1e-7, a["sic_auc"].Float64s()[0])
			check(t, r, "aic", 1e-7, a["aic_auc"].Float64s()[0])
			curve := decode(t, r.Payloads["curves"][0])
			near(t, name+" sic", curve[:1001], a["sic_curve_y"], 1e-6)
			near(t, name+" aic", curve[1001:], a["aic_curve_y"], 1e-6)
			curves = append(curves, r.Payloads["curves"]...)
		}
		for _, of := range []string{"mean", "median"} {
			a := golden.Arrays(t, filepath.Join(golden.Dir(t), "pic",
				fmt.Sprintf("mas_%s_aggregate_%s.npz", net, of)))
			r := stagetest.Run(t, PICCurve, &PICCurveParams{of}, map[string][]stages.Data{
				"curves": {stagetest.Items(stages.Facts{"responses": "sic,aic"}, curves...)}})
			check(t, r, "sic", 1e-7, a["sic_auc"].Float64s()[0])
			check(t, r, "aic", 1e-7, a["aic_auc"].Float64s()[0])
			curve := decode(t, r.Payloads["curves"][0])
			near(t, net+" "+of+" sic", curve[:1001], a["sic_y"], 1e-6)
			near(t, net+" "+of+" aic", curve[1001:], a["aic_y"], 1e-6)
		}
	}
}

func decode(t *testing.T, payload []byte) []float64 {
	t.Helper()
	v, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return v.Float64s()
}

// TestOfficialPAIR compares scores and curves with those of the authors of PIC.
func TestOfficialPAIR(t *testing.T) {
	for _, net := range []string{"smallcnn", "gapcnn"} {
		for i := range 4 {
			for _, kind := range []string{"sic", "aic"} {
				name := fmt.Sprintf("pair_%s_img%d_%s.npz", net, i, kind)
				a := golden.Arrays(t, filepath.Join(golden.Dir(t), "pic", name))
				response := a["predictions"].Float64s()
				r := stagetest.Run(t, PIC, &PICParams{true, 0.1, paper},
					information(paper, a["webp_len"].Float64s(), response, response))
				check(t, r, kind, 1e-7, a["auc"].Float64s()[0])
				curve := decode(t, r.Payloads["curves"][0])
				near(t, name, curve[:1001], a["curve_y"], 1e-6)
			}
		}
	}
}

// TestPICCurve checks that undefined curves are left out and counted.
func TestPICCurve(t *testing.T) {
	of := func(y float64) []byte {
		return stages.NewTensor(slices.Repeat([]float64{y}, 2*metric.InformationPoints), 2,
			metric.InformationPoints).Encode()
	}
	in := map[string][]stages.Data{"curves": {stagetest.Items(stages.Facts{"responses": "sic,aic"}, of(0.1),
		of(math.NaN()), of(0.2), of(0.6))}}
	r := stagetest.Run(t, PICCurve, nil, in)
	check(t, r, "sic", 1e-12, 0.2)
	check(t, r, "aic", 1e-12, 0.2)
	if len(r.Warnings) != 2 || r.Warnings[0] != "sic is undefined on 1 of 4 images, which are left out" {
		t.Errorf("warnings %q", r.Warnings)
	}
	r = stagetest.Run(t, PICCurve, &PICCurveParams{"mean"}, in)
	check(t, r, "sic", 1e-12, 0.3)
	in["curves"] = []stages.Data{stagetest.Items(stages.Facts{"responses": "sic,aic"}, of(math.NaN()))}
	check(t, stagetest.Run(t, PICCurve, nil, in), "sic", 0, math.NaN())
}
