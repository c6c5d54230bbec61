package pipeline_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

type curveParams struct {
	stages.Precise
	Steps int `yaml:"steps" doc:"points"`
}

// published returns how much curves of insertion may deviate.
func published(t *testing.T) map[string]stages.Rounding {
	t.Helper()
	s, ok := registry.Builtin().Lookup("perturb/insertion")
	if !ok {
		t.Fatal("no stage is called perturb/insertion")
	}
	return s.Rounding
}

// curved adds to a lab a stage of curves that change so in bfloat16.
func curved(l *lab, rounding map[string]stages.Rounding,
	change func(item int, probability, correct []float64)) {
	s := stages.New(stages.Def[curveParams]{
		Name: "lab/curve", Doc: "curves", Version: 1, Device: true, Defaults: curveParams{Steps: 8},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "curves", Type: stages.Curves}},
		Facts: func(curveParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"curves": {"responses": "probability,logit,correct"}}, nil
		},
		Run: func(_ context.Context, p curveParams, e *stages.Env) error {
			for i := range e.Len() {
				curve := make([]float64, 3*p.Steps)
				probability, logit, correct := curve[:p.Steps], curve[p.Steps:2*p.Steps], curve[2*p.Steps:]
				for k := range p.Steps {
					logit[k] = first(e.In("images", i)) - float64(k)
					probability[k] = 1 / (1 + math.Exp(-logit[k]))
				}
				if e.Precision == stages.BFloat16 {
					change(place(e.Calls[i].ID), probability, correct)
				}
				l.count("in "+e.Precision, 1)
				e.Put("curves", i, stages.NewTensor(curve, 3, p.Steps).Encode())
			}
			return nil
		},
	})
	s.Rounding = rounding
	l.stages[s.Name] = &s
}

// add adds a number to all others.
func add(off float64, to []float64) {
	for k := range to {
		to[k] += off
	}
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

// TestLackingPrecision checks that a run that would need a precision which its devices lack computes nothing,
// and that one whose cells are stored, or were before something upstream changed, doesn't ask.
func TestLackingPrecision(t *testing.T) {
	l := newLab(t)
	l.number(6)
	curved(l, published(t), func(int, []float64, []float64) {})
	lacks, asked := errors.New("no such arithmetic"), 0
	run := func(want error) {
		t.Helper()
		p := l.parse(bothPrecisions)
		s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		e := l.engine(p, s)
		e.Has = func(precision string) error {
			if asked++; precision != stages.BFloat16 {
				t.Errorf("asks for %s", precision)
			}
			return want
		}
		clear(l.ran)
		result, err := e.Run(t.Context(), p, nil)
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if result != nil {
			result.Close()
		}
	}
	run(lacks)
	l.want("computed", "in float32", 0, "in bfloat16", 0)
	run(nil)
	if l.ran["in bfloat16"] == 0 || asked != 2 {
		t.Errorf("asked %d times, %d items in bfloat16", asked, l.ran["in bfloat16"])
	}
	lacks = nil // it isn't asked
	run(lacks)
	if asked != 2 || l.ran["in bfloat16"] > 0 {
		t.Errorf("asked %d times of what is stored", asked)
	}
}

// TestEstimateCompares checks that plans have the time to compute some items in float32, too, as measured:
// four of a program, and then one in twenty.
func TestEstimateCompares(t *testing.T) {
	l := newLab(t)
	l.number(40)
	curved(l, published(t), func(int, []float64, []float64) {})
	p := l.parse(bothPrecisions)
	s, err := store.Open(filepath.Join(l.dir, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := l.engine(p, s)
	pipeline.Remember(t, e, p, "curves[precision=bfloat16]", execute.Speed{Calls: 4, Made: 4, Seconds: 4,
		Compared: 4, Comparing: 8}, "curves[precision=float32]", execute.Speed{Calls: 4, Made: 4, Seconds: 8})
	for compare, want := range map[int]float64{0: 40 + 2*(4+2) + 80, 10: 40 + 2*(4+4) + 80, -1: 40 + 80} {
		e.Compare = compare
		o, err := e.Plan(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		got := o.Estimate(p.Steps[len(p.Steps)-1])
		if got.Seconds *= float64(len(e.Devices)); math.Abs(got.Seconds-want) > 1e-9 || got.Unknown > 0 {
			t.Errorf("compare %d: %+v, want %g s", compare, got, want)
		}
	}
}

// TestPrecisionsAreOnProbation: of curves in bfloat16 four items are compared with float32 first, and then
// one in twenty, by the tolerances of insertion. Refused is an error of 0.32, which OpenVINO's float32 makes
// of a transformer's area, and one of 0.05 of the probability in a quarter of the items. What was measured
// isn't, nor are predictions that flip at a point.
func TestPrecisionsAreOnProbation(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(item int, probability, correct []float64)
		refused string // what the error says; "" if it passes
		largest float64
	}{
		"rounding":       {func(_ int, p, _ []float64) { add(0.02, p) }, "", 0.02},
		"a flip in each": {func(item int, _, correct []float64) { correct[item%8] = 1 }, "", 0},
		"two flips in each": {func(_ int, _, correct []float64) { correct[0], correct[5] = 1, 1 }, "",
			0.25},
		"a transformer": {func(_ int, p, _ []float64) { add(0.32, p) },
			`"probability" of item "i0" deviates by 0.32`, 0.32},
		"a quarter of the items": {func(item int, p, _ []float64) {
			if item%4 == 3 {
				add(0.05, p)
			}
		}, `deviates by 0.05 and may by 0.044`, 0.05},
		"predictions": {func(_ int, _, correct []float64) { add(1, correct[:4]) },
			`"correct" of item "i0" deviates by 0.5`, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.number(160)
			l.chunk = 16
			curved(l, published(t), tc.change)
			res, err := l.run(bothPrecisions)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Close()
			if len(res.Probation.Programs) != 1 {
				t.Fatalf("compared: %+v", res.Probation)
			}
			c := res.Probation.Programs[0]
			if c.Stage != "lab/curve" || c.Precision != stages.BFloat16 || c.Items < 4 || c.Items > 40 ||
				math.Abs(c.Largest.By-tc.largest) > 1e-9 {
				t.Errorf("compared: %+v", c)
			}
			state, why := ended(t, res, "curves[precision=float32]")
			if state != schedule.Done {
				t.Errorf("float32: state %d: %s", state, why)
			}
			state, why = ended(t, res, "curves[precision=bfloat16]")
			if tc.refused == "" {
				if state != schedule.Done || c.Off > 0 {
					t.Errorf("state %d, %d items off: %s", state, c.Off, why)
				}
				l.want("computed", "in bfloat16", 160, "in float32", 160+c.Items)
				return
			}
			if state != schedule.Failed || !strings.Contains(why, "cpu bfloat16") ||
				!strings.Contains(why, tc.refused) || !strings.Contains(why, "precision: float32") {
				t.Errorf("state %d: %s", state, why)
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
		})
	}
}

// TestOtherTolerancesJudgeAgain: what was refused is judged again once its tolerances are others.
func TestOtherTolerancesJudgeAgain(t *testing.T) {
	l := newLab(t)
	l.number(32)
	l.chunk = 16
	state := func(tolerance float64) schedule.State {
		curved(l, map[string]stages.Rounding{stages.BFloat16: {"probability": tolerance, "logit": 0.02}},
			func(_ int, p, _ []float64) { add(0.05, p) })
		l.ran = map[string]int{}
		res, err := l.run(bothPrecisions)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Close()
		state, _ := ended(t, res, "curves[precision=bfloat16]")
		return state
	}
	for _, tc := range []struct {
		tolerance float64
		want      schedule.State
		computes  bool
	}{{0.02, schedule.Failed, true}, {0.02, schedule.Failed, false}, {0.03, schedule.Failed, true},
		{0.06, schedule.Done, true}, {0.06, schedule.Cached, false}} {
		if got := state(tc.tolerance); got != tc.want || l.ran["in bfloat16"] > 0 != tc.computes {
			t.Errorf("a tolerance of %g: state %d, %d items computed", tc.tolerance, got,
				l.ran["in bfloat16"])
		}
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
		curved(l, map[string]stages.Rounding{stages.BFloat16: {"logit": 0.02},
			stages.Float16: {"logit": math.NaN()}}, nil)
		yaml := strings.Replace(bothPrecisions, "float32, bfloat16", "float32, "+precision, 1)
		_, err := plan.Parse("lab.yaml", []byte(yaml), l.dir, l, plan.Overrides{})
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "write precision: float32 or bfloat16") {
			t.Errorf("%s: %v", precision, err)
		}
	}
}
