package program_test

import (
	"context"
	"math"
	"reflect"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestFit(t *testing.T) {
	tests := []struct{ fixed, rows, limit, want int }{
		{0, 225, 16, 15}, {0, 11, 16, 11}, {0, 33, 16, 11}, {0, 16, 16, 16}, {0, 17, 16, 9},
		{0, 50, 8, 5}, {0, 225, 8, 8}, {0, 100_000, 8, 8},
		{0, 0, 0, 2}, {0, 5, 1, 2}, {1, 225, 16, 1}, {4, 3, 16, 4},
	}
	for _, tt := range tests {
		n := &program.Net{Spec: modelfile.Spec{Batch: tt.fixed}}
		if got := n.Fit(tt.rows, tt.limit); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%d rows, at most %d, fixed %d: %d, want %d", tt.rows, tt.limit, tt.fixed, got, tt.want)
		}
	}
}

func TestTargetOf(t *testing.T) {
	for _, tt := range []struct {
		classes []int64
		want    program.Target
		ok      bool
	}{
		{[]int64{3}, program.Target{Class: 3, Minus: -1}, true},
		{[]int64{3, 0}, program.Target{Class: 3, Minus: 0}, true},
		{[]int64{4}, program.Target{}, false},
		{[]int64{0, 4}, program.Target{}, false},
		{[]int64{-1}, program.Target{}, false},
		{[]int64{0, 1, 2}, program.Target{}, false},
		{nil, program.Target{}, false},
	} {
		got, err := program.TargetOf(stages.NewTensor(tt.classes, len(tt.classes)).Encode(), 4)
		if (err == nil) != tt.ok || tt.ok && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %v, %v", tt.classes, got, err)
		}
	}
}

func TestResponses(t *testing.T) {
	row := []float32{1000, 1001, 999, 1001}
	logits := &program.Net{Spec: modelfile.Spec{Classes: 4}}
	// softmax([-1 0 -2 0])
	sum := math.Exp(-1) + 2 + math.Exp(-2)
	for _, tt := range []struct {
		net  *program.Net
		row  []float32
		t    program.Target
		p, l float64
	}{
		{logits, row, program.Target{Class: 0, Minus: -1}, math.Exp(-1) / sum, 1000},
		{logits, row, program.Target{Class: 1, Minus: 2}, (1 - math.Exp(-2)) / sum, 2},
		{&program.Net{Spec: modelfile.Spec{Classes: 2, Probabilities: true}}, []float32{0.25, 0.75},
			program.Target{Class: 0, Minus: -1}, 0.25, math.Log(0.25)},
		{&program.Net{Spec: modelfile.Spec{Classes: 2, Probabilities: true}}, []float32{0.25, 0.75},
			program.Target{Class: 1, Minus: 0}, 0.5, math.Log(3)},
	} {
		if p := tt.net.Probability(tt.row, tt.t); !(math.Abs(p-tt.p) <= 1e-15) {
			t.Errorf("%+v: probability %v, want %v", tt.t, p, tt.p)
		}
		if l := tt.net.Logit(tt.row, tt.t); !(math.Abs(l-tt.l) <= 1e-12) {
			t.Errorf("%+v: logit %v, want %v", tt.t, l, tt.l)
		}
	}
	if c := program.Predicted(row); c != 1 {
		t.Errorf("predicted %d, want the first of the largest, 1", c)
	}
}

// TestBlends holds both programs that mix images against forward passes over images mixed here, bit for bit.
func TestBlends(t *testing.T) {
	for name, n := range map[string]*program.Net{
		"as written":      modeltest.Net(t, modeltest.Official(t, "smallcnn", 0)),
		"batch-dependent": net(t, small(t, "means")),
	} {
		t.Run(name, func(t *testing.T) { testBlends(t, n) })
	}
}

func testBlends(t *testing.T, n *program.Net) {
	const batch = 4
	pixels := n.Height * n.Width
	slot, ctx := stagetest.NewSlot(), context.Background()
	x, base := make([]float32, n.Size()), make([]float32, n.Size())
	ranks := make([]float32, pixels)
	for i := range x {
		x[i], base[i] = float32(math.Sin(float64(i))), float32(math.Cos(float64(i)*0.3))
		ranks[i%pixels] = float32(i * 37 % pixels)
	}
	masked, err := n.Masked(t.Context(), slot, batch)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := n.Curve(t.Context(), slot, batch)
	if err != nil {
		t.Fatal(err)
	}
	forward, err := n.Forward(t.Context(), slot, batch)
	if err != nil {
		t.Fatal(err)
	}
	steps := []int{0, 100, 777, pixels}
	masked.Set(x, base)
	curve.Set(x, base, ranks)
	for i, k := range steps {
		for p := range pixels {
			keep := float32(1)
			if ranks[p] < float32(k) {
				keep = 0
			}
			masked.Mask(i)[p] = keep
			for c := range 3 {
				forward.Image(i)[c*pixels+p] = x[c*pixels+p]
				if keep == 0 {
					forward.Image(i)[c*pixels+p] = base[c*pixels+p]
				}
			}
		}
	}
	for _, run := range []func() error{
		func() error { return masked.Run(ctx) },
		func() error { return curve.Run(ctx, steps) },
		func() error { return forward.Run(ctx) },
	} {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range steps {
		for c, want := range forward.Row(i) {
			if masked.Row(i)[c] != want || curve.Row(i)[c] != want {
				t.Fatalf("%d pixels replaced, class %d: masked %v, curve %v, want %v", k, c, masked.Row(i)[c],
					curve.Row(i)[c], want)
			}
		}
	}
	for _, p := range []*program.Program{masked.Program, curve.Program, forward.Program} {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
