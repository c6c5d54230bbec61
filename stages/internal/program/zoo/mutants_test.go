package zoo

import (
	"encoding/csv"
	"os"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

const mutantsFile = "mutants.csv"

// TestMutants holds that the zoo sees a VJP that is wrong by one percent, for every operator that stands on
// the backward pass of one of its nets, and lists which net sees it and by how much, and which operators no
// net has.
func TestMutants(t *testing.T) {
	if os.Getenv("RUNEXP_ZOO_MUTANTS") == "" {
		t.Skip("skipped: make zoo-mutants asks for it")
	}
	nets := map[string]specimen{}
	for _, s := range specimens(t, folder(t)) {
		nets[s.key()] = s
	}
	rows := readTable(t)
	slices.SortStableFunc(rows, func(a, b row) int { return a.Nodes - b.Nodes })
	lines := [][]string{{"operator", "seen by", "exporter", "relative error", "allowed"}}
	for _, op := range relevance.All() {
		if op.Kind == relevance.Opaque {
			continue
		}
		t.Run(op.Type, func(t *testing.T) {
			const tries = 6
			tried := 0
			for _, r := range rows {
				s, ok := nets[r.key()]
				if !ok || r.Problem != "" || !slices.Contains(r.Operators, op.Type) || tried == tries {
					continue
				}
				off, passed, err := s.mutated(t, op)
				if err != nil {
					t.Fatal(err)
				}
				if !passed {
					continue // it computes shapes or constants there
				}
				tried++
				if off > s.limit() {
					lines = append(lines,
						[]string{op.Type, s.name, s.exporter, figure(off), figure(s.limit())})
					return
				}
			}
			if tried > 0 {
				t.Errorf("a VJP that is wrong by one percent passes in %d nets", tried)
			}
			lines = append(lines, []string{op.Type, "", "", "", ""})
		})
	}
	f, err := os.Create(mutantsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := csv.NewWriter(f).WriteAll(lines); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// mutated returns the error of the derivative when an operator's VJP is a hundredth too large, and whether it
// is on the way.
func (s specimen) mutated(t *testing.T, op *relevance.Op) (off float64, passed bool, err error) {
	n, err := s.net()
	if err != nil {
		return 0, false, err
	}
	want, err := s.array("gradient")
	if err != nil {
		return 0, false, err
	}
	p := relevance.Policy{Name: "mutant " + op.Type, Apart: true, Cases: []relevance.Case{{
		Match: relevance.Type(op.Type),
		Rule: func(b *relevance.Builder, op *relevance.Op, n onnx.Node,
			r []relevance.Value) []relevance.Value {
			back := op.VJP(b, n, r)
			for i, v := range back {
				if v != "" {
					passed = true
					back[i] = b.Mul(v, b.Scalar(1.01))
				}
			}
			return back
		},
	}}}
	slot := newSlot()
	defer slot.close()
	got, _, err := s.derivative(t, n, slot, p)
	if err != nil {
		return 0, false, err
	}
	return distance(got, want), passed, nil
}
