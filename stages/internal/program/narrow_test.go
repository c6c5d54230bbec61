package program_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestNarrow holds that behind the last attention of a transformer only the class
// token is computed, that this changes neither answers nor derivatives by a bit, and
// that a value which somebody looks at stays whole, as does a net without tokens.
func TestNarrow(t *testing.T) {
	all := nets(t, false)
	for name, tokens := range map[string]float64{"vit": 65, "timm_vit_op13": 17, "timm_vit_op17": 17, "resnet": 0} {
		n := net(t, all[name])
		slot := threaded{1, stagetest.NewSlot()}
		plain := program.Question{Rules: relevance.Derivative()}
		less := program.Narrowed(t.Context(), t, n, slot, plain)
		if enough := len(less) >= 10; enough != (tokens > 0) {
			t.Errorf("%s: of %d values less is made", name, len(less))
		}
		for v, times := range less {
			if times != tokens {
				t.Errorf("%s: %q is %g times smaller than it was, not %g", name, v, times, tokens)
			}
		}
		// Rules of other kinds walk the whole graph.
		same := program.Question{Rules: apart()}
		if len(program.Narrowed(t.Context(), t, n, slot, same)) > 0 {
			t.Errorf("%s: by other rules the graph isn't whole", name)
		}
		answers, derivatives := differentiate(t, n, slot, plain, 2, 2)
		wantAnswers, wantDerivatives := differentiate(t, n, slot, same, 2, 2)
		if !sameBits(answers, wantAnswers) || !sameBits(derivatives, wantDerivatives) {
			t.Errorf("%s: other bits", name)
		}
		looks := 0
		for v := range less {
			q := program.Question{Rules: relevance.Derivative(), Layer: v}
			if _, ok := program.Narrowed(t.Context(), t, n, slot, q)[v]; ok {
				t.Errorf("%s: %q isn't whole for who looks at it", name, v)
			}
			if g, err := n.Graph(t.Context(), slot, 2); err != nil || g.Shape(v)[0] != 2 || looks > 3 {
				continue
			}
			looks++
			if got, _ := differentiate(t, n, slot, q, 2, 2); !sameBits(got, answers) {
				t.Errorf("%s: other bits with a look at %q", name, v)
			}
		}
	}
}

// apart returns rules of the kind that isn't derivatives, which come to the same.
func apart() relevance.Policy {
	return relevance.Policy{Name: "same", Grouped: true, Cases: []relevance.Case{{
		Match: relevance.Type("nothing"), Rule: relevance.Gradient,
	}}}
}

// TestUnshape holds which slices become those that are wanted, by changes of shape
// that merge an axis with others, split it, leave it or mix it up.
func TestUnshape(t *testing.T) {
	for _, tt := range []struct {
		name     string
		axis     int
		at       []int
		in, out  []int
		fromAxis int
		from     []int
	}{
		{"batch and tokens split", 1, []int{0, 3}, []int{10, 4}, []int{2, 5, 4}, 0, []int{0, 3, 5, 8}},
		{"batch and tokens merged", 0, []int{0, 3, 5, 8}, []int{2, 5, 4}, []int{10, 4}, 1, []int{0, 3}},
		{"merged, but not the same of each", 0, []int{0, 3, 5, 9}, []int{2, 5, 4}, []int{10, 4}, 0, nil},
		{"merged, but of one only", 0, []int{0, 3}, []int{2, 5, 4}, []int{10, 4}, 0, nil},
		{"heads merged", 1, []int{2}, []int{2, 5, 2, 3}, []int{2, 5, 6}, 1, []int{2}},
		{"an axis of 1", 1, []int{2}, []int{2, 1, 5, 4}, []int{2, 5, 4}, 2, []int{2}},
		{"cut across", 0, []int{1}, []int{4, 3}, []int{6, 2}, 0, nil},
		{"no elements", 0, []int{1}, []int{2, 0, 4}, []int{6, 0}, 0, nil},
		{"fewer elements", 0, []int{1}, []int{2, 3}, []int{3, 3}, 0, nil},
		{"fewer axes", 2, []int{1}, []int{2, 3}, []int{3, 2}, 0, nil},
		{"merged from too many to count", 0, []int{0}, []int{1 << 39, 2, 2}, []int{1 << 40, 2}, 0, nil},
		{"too many to count", 1, []int{1}, []int{1 << 30}, []int{1 << 29, 2}, 0, nil},
	} {
		axis, from, ok := program.Unshape(tt.axis, tt.at, tt.in, tt.out)
		if ok != (tt.from != nil) {
			t.Errorf("%s: found %t", tt.name, ok)
		} else if ok && (axis != tt.fromAxis || !cmp.Equal(from, tt.from)) {
			t.Errorf("%s: slices %v of axis %d, want %v of %d", tt.name, from, axis, tt.from, tt.fromAxis)
		}
	}
}
