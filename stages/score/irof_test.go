package score

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// segmentFacts returns the facts of curves that remove segments.
func segmentFacts(order string) stages.Facts {
	f := facts(order, "")
	delete(f, "step_pixels")
	f["unit"] = "segment"
	return f
}

// TestIROF checks the relative drop: by hand, its extremes, curves that don't fall, its invariance to a
// factor, and curves for which it is undefined.
func TestIROF(t *testing.T) {
	in := map[string][]stages.Data{"curves": {stagetest.Items(segmentFacts("morf"), curve(0.8, 0.4, 0.2, 0.2),
		curve(1, 0, 0, 0), curve(0.4, 0.2, 0.1, 0.1), curve(0.5, 0.5, 0.5, 0.5), curve(0.1, 1, 1, 1),
		curve(0, 0, 0.5, 0), curve(nan, nan, nan, nan))}}
	want := (0 + 0.5 + 0.75 + 0.75) / 4
	check(t, stagetest.Run(t, IROF, nil, in), "scores", 1e-12, want, 0.75, want, 0, -6.75, nan, nan)
	r := stagetest.Run(t, IROF, &IROFParams{"logit"}, in)
	check(t, r, "scores", 1e-12, want, 0.75, want, 0, -6.75, nan, nan)
	in["curves"] = []stages.Data{stagetest.Items(segmentFacts("morf"),
		stages.NewTensor([]float64{1, 1, -2, 1, 1, 1}, 3, 2).Encode())}
	check(t, stagetest.Run(t, IROF, &IROFParams{"logit"}, in), "scores", 0, nan) // it is negative
	in["curves"] = []stages.Data{stagetest.Items(segmentFacts("morf"),
		stages.NewTensor([]float64{1, 1, 1, -5, 1, 1}, 3, 2).Encode())}
	r = stagetest.Run(t, IROF, &IROFParams{"logit"}, in)
	check(t, r, "scores", 0, 3)
	if high := stages.MeasureOf(r.Facts["scores"]).High; !math.IsInf(high, 1) {
		t.Errorf("logits have relative drops up to %v", high)
	}
	for order, direction := range map[string]stages.Direction{"morf": stages.Higher, "lerf": stages.Lower} {
		in["curves"] = []stages.Data{stagetest.Items(segmentFacts(order), curve(1, 0))}
		m := stages.MeasureOf(stagetest.Run(t, IROF, nil, in).Facts["scores"])
		if m.Direction != direction || m.High != 1 {
			t.Errorf("%s: %+v", order, m)
		}
	}
	in["curves"] = []stages.Data{stagetest.Items(facts("morf", "1"), curve(1, 0))}
	fails(t, IROF, nil, in, "needs curves that remove segments")
	in["curves"] = []stages.Data{stagetest.Items(segmentFacts("insertion"), curve(1, 0))}
	fails(t, IROF, nil, in, `needs curves that remove pixels, not of "insertion"`)
}

// TestIROFOfQuantus compares the score with that of Quantus 0.6.0 on the same curves, made by
// testdata/irof.py. Quantus leaves out the point of the image and takes the area of the N others, of width N
// − 1, from N: that is 1 for a map whose segments change nothing, and N for one whose first segment is all
// that counts.
func TestIROFOfQuantus(t *testing.T) {
	b, err := os.ReadFile("testdata/irof.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Curve   []float64
		Quantus float64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		in := map[string][]stages.Data{"curves": {stagetest.Items(segmentFacts("morf"), curve(c.Curve...))}}
		n := float64(len(c.Curve) - 1)
		last := c.Curve[len(c.Curve)-1] / c.Curve[0]
		first := c.Curve[1] / c.Curve[0]
		// Σ (1 − rₖ) over the N points is N − Σ rₖ, and the trapezoid leaves half of the first and the last
		// out.
		check(t, stagetest.Run(t, IROF, nil, in), "scores", 1e-9, (c.Quantus-(first+last)/2)/(n+1))
	}
}
