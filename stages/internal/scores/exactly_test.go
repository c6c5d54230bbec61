package scores

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/interval"
)

// TestExactnessSentence rounds a growth up, as one that isn't exceeded, and says where nothing was estimated.
func TestExactnessSentence(t *testing.T) {
	some := &Exactness{cheap: "bfloat16", items: "images", measured: [2]int{64, 64}, of: 100,
		growth: 0.00002}
	for want, x := range map[string]*Exactness{
		"64 of 100 images were computed in float32, and intervals grew by at most 0.1 %.": some,
		"64 of 100 images were computed in float32, and intervals grew by at most 0.7 %.": {
			items: "images", measured: some.measured, of: 100, growth: 0.007},
		" All 20 images were computed in float32: nothing is estimated, and exact saves nothing.": {
			items: "images", measured: [2]int{20, 20}, of: 20},
		" This is the answer of exact scores, estimated from curves of 56 steps: 64 of 100 images have " +
			"exact scores, and": {
			items: "images", measured: some.measured, of: 100, cheap: "curves of 56 steps", wired: true},
		"20 to 30 of 30 images": {items: "images", measured: [2]int{20, 30}, of: 30},
	} {
		if got := x.Sentence(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	whole := &Exactness{items: "images"}
	whole.Grew(interval.Sample{Exact: []float64{1, 2}})
	if whole.growth != 0 {
		t.Errorf("exact scores of all grow by %v", whole.growth)
	}
}

// TestExactlyMeansNothing refuses parameters that have no effect.
func TestExactlyMeansNothing(t *testing.T) {
	for want, x := range map[string]Exactly{
		"pilot means nothing without exact: float32": {Pilot: 16},
		"cheap means nothing without exact":          {Pilot: 32, Cheap: "curves of 56 steps"},
	} {
		err := x.CheckExactly(func(string) bool { return false })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", x, err)
		}
		if err := x.CheckExactly(func(string) bool { return true }); err != nil {
			t.Errorf("%+v with exact scores: %v", x, err)
		}
	}
	for _, x := range []Exactly{UsualExactly, {Pilot: 16, Exact: "float32", Cheap: "bfloat16"}} {
		if err := x.CheckExactly(func(string) bool { return false }); err != nil {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
