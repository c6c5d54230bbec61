package lower_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// TestSinkGather holds that behind the last attention of a transformer only the class token is computed, and
// that the value of a layer stays whole, as do a net without tokens and one whose rules aren't those of
// derivatives.
func TestSinkGather(t *testing.T) {
	all := modeltest.Nets(t, false)
	for name, tokens := range map[string]float64{"vit": 65, "timm_vit_op13": 17, "timm_vit_op17": 17,
		"resnet": 0} {
		s := modeltest.Source(t, all[name])
		g, _, err := lower.Graph(t.Context(), s, 2)
		if err != nil {
			t.Fatal(err)
		}
		less := lower.Sunk(t, s, g, lower.Question{Rules: relevance.Derivative()})
		if enough := len(less) >= 10; enough != (tokens > 0) {
			t.Errorf("%s: of %d values less is computed", name, len(less))
		}
		for v, times := range less {
			if times != tokens {
				t.Errorf("%s: %q is %g times smaller than it was, not %g", name, v, times, tokens)
			}
			if _, ok := lower.Sunk(t, s, g, lower.Question{Rules: relevance.Derivative(), Layer: v})[v]; ok {
				t.Errorf("%s: %q isn't whole as a layer", name, v)
			}
		}
		other := relevance.Policy{Name: "other",
			Cases: []relevance.Case{{Match: relevance.Type("nothing"), Rule: relevance.Gradient}}}
		if len(lower.Sunk(t, s, g, lower.Question{Rules: other})) > 0 {
			t.Errorf("%s: by other rules the graph isn't whole", name)
		}
	}
}

// TestUnreshape holds which slices become those that are wanted, by changes of shape that merge an axis with
// others, split it, leave it or mix it up.
func TestUnreshape(t *testing.T) {
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
		axis, from, ok := lower.Unreshape(tt.axis, tt.at, tt.in, tt.out)
		if ok != (tt.from != nil) {
			t.Errorf("%s: found %t", tt.name, ok)
		} else if ok && (axis != tt.fromAxis || !slices.Equal(from, tt.from)) {
			t.Errorf("%s: slices %v of axis %d, want %v of %d", tt.name, from, axis, tt.from, tt.fromAxis)
		}
	}
}
