package pipeline_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

type curveParams struct {
	stages.Precise
	Steps int `yaml:"steps" doc:"points"`
}

// curved adds to a lab a stage of curves that are off by so much in bfloat16, in which they may be off by
// 0.02.
func curved(l *lab, off float64) {
	s := stages.New(stages.Def[curveParams]{
		Name: "lab/curve", Doc: "curves", Version: 1, Device: true, Defaults: curveParams{Steps: 4},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "curves", Type: stages.Curves}},
		Run: func(_ context.Context, p curveParams, e *stages.Env) error {
			for i := range e.Len() {
				curve := make([]float64, 3*p.Steps)
				for k := range curve {
					curve[k] = 1 / (1 + math.Exp(float64(k)-first(e.In("images", i))))
					if e.Precision == stages.BFloat16 {
						curve[k] += off
					}
				}
				l.count("in "+e.Precision, 1)
				e.Put("curves", i, stages.NewTensor(curve, 3, p.Steps).Encode())
			}
			return nil
		},
	})
	s.Rounding = map[string]stages.Rounding{stages.BFloat16: {"curves": 0.02},
		stages.Float16: {"curves": math.NaN()}}
	l.stages[s.Name] = &s
}

const bothPrecisions = `
name: both
axes:
  precision: [float32, bfloat16]
stages:
  images: {uses: lab/source}
  curves: {uses: lab/curve, matrix: [precision], in: {images: images}, with: {precision: "${precision}"}}
publish: []
`

// TestPrecisionsAreOnProbation: of curves in bfloat16 four items are compared with float32 first, and then
// one in twenty. An error of 0.32, which OpenVINO's float32 makes of a transformer's area, is refused, and
// one within what was measured isn't.
func TestPrecisionsAreOnProbation(t *testing.T) {
	l := newLab(t)
	l.number(160)
	l.chunk = 16
	curved(l, 0.005)
	res := l.mustRun(bothPrecisions)
	p := res.Probation
	if len(p.Programs) != 1 {
		t.Fatalf("compared: %+v", p)
	}
	c := p.Programs[0]
	if c.Stage != "lab/curve" || c.Precision != stages.BFloat16 || c.Off > 0 || c.Items < 4 || c.Items > 40 ||
		c.Largest.Quantity != "curves" || c.Largest.Tolerance != 0.02 || math.Abs(c.Largest.By-0.005) > 1e-9 {
		t.Errorf("compared: %+v", c)
	}
	l.want("computed", "in bfloat16", 160, "in float32", 160+c.Items)

	l = newLab(t)
	l.number(160)
	l.chunk = 16
	curved(l, 0.32)
	res, err := l.run(bothPrecisions)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	state, why := ended(t, res, "curves[precision=bfloat16]")
	if state != schedule.Failed || !strings.Contains(why, "cpu bfloat16") ||
		!strings.Contains(why, "by 0.32 and may by 0.02") || !strings.Contains(why, "precision: float32") {
		t.Errorf("state %d: %s", state, why)
	}
	if state, why := ended(t, res, "curves[precision=float32]"); state != schedule.Done {
		t.Errorf("float32: state %d: %s", state, why)
	}
	again, err := l.run(bothPrecisions)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if state, _ := ended(t, again, "curves[precision=bfloat16]"); state != schedule.Failed ||
		l.ran["in bfloat16"] != 0 {
		t.Errorf("a later run has state %d, and computes %d items", state, l.ran["in bfloat16"])
	}
}

// TestPrecisionsAreMeasured: a precision in which a stage wasn't measured is an error before anything runs,
// and so is one in which it deviates too much.
func TestPrecisionsAreMeasured(t *testing.T) {
	for precision, want := range map[string]string{
		"tf32":    "lab/curve: it isn't measured in tf32 yet",
		"float16": "lab/curve: it deviates too much in float16",
	} {
		l := newLab(t)
		l.number(2)
		curved(l, 0)
		yaml := strings.Replace(bothPrecisions, "float32, bfloat16", "float32, "+precision, 1)
		_, err := plan.Parse("lab.yaml", []byte(yaml), l.dir, l, plan.Overrides{})
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "write precision: float32 or bfloat16") {
			t.Errorf("%s: %v", precision, err)
		}
	}
}
