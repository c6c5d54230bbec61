package stats

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestMeanCurve(t *testing.T) {
	pic := stages.Facts{"responses": "sic,aic", "direction": "higher", "order": "information"}
	two := func(sic, aic []float64) []byte {
		return stages.NewTensor(slices.Concat(sic, aic), 2, len(sic)).Encode()
	}
	in := map[string][]stages.Data{"curves": {
		stagetest.At(stagetest.Items(pic, two([]float64{0, .5, 1}, []float64{0, 0, 1}),
			two([]float64{0, nan, 1}, []float64{0, 0, 1})), "method", "a"),
		stagetest.At(stagetest.Items(pic, two([]float64{0, 1, 1}, []float64{0, 1, 1}),
			two([]float64{0, 1, 1}, []float64{0, 0, 1})), "method", "b"),
	}}
	r := stagetest.Run(t, MeanCurve, &MeanCurveParams{Response: "sic"}, in)
	share := func(i int) []float64 {
		y, err := metric.Response(r.Facts["curves"], r.Payloads["curves"][i], "share")
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	if y := share(0); !slices.Equal(y, []float64{0, .75, 1}) {
		t.Errorf("the mean is %v", y)
	}
	if y := share(1); !math.IsNaN(y[1]) {
		t.Errorf("the mean with an undefined point is %v", y)
	}
	if f := r.Facts["curves"]; f["response"] != "sic" || f["order"] != "information" {
		t.Errorf("facts %v", f)
	}
	r = stagetest.Run(t, MeanCurve, &MeanCurveParams{Points: 3}, map[string][]stages.Data{"curves": {
		curves(nil, nil, []float64{0, .2, .4, 1}, []float64{0, .5, .5, nan})}})
	if y := share(0); !slices.Equal(y, []float64{0, .3, 1}) && !(math.Abs(y[1]-.3) <= 1e-15) {
		t.Errorf("three points of four: %v", y)
	}
	for want, p := range map[string]MeanCurveParams{"several responses: name one of sic, aic": {},
		`no response "logit"`: {Response: "logit"}} {
		if _, err := stagetest.Try(MeanCurve, &p, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
