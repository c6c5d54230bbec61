package webpage

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestSteps compares with the definition: at each point the first units in the order are replaced, or the
// last.
func TestSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rule := range []stages.Replacement{{Steps: 10}, {Steps: 3}, {Step: 7}, {}, {Step: 1, Limit: 20},
		{Shares: []float64{0.1, 0.3, 0.3, 0.9}}, {Steps: 254}} {
		for _, units := range []int{35, 5} {
			const width, height = 7, 5
			ranks := make([]uint32, width*height)
			for p, unit := range r.Perm(len(ranks)) {
				ranks[p] = uint32(unit % units)
			}
			points := rule.Points(units, width)
			for _, order := range []string{"morf", "lerf"} {
				bounds := boundsOf(&removal{Order: order, Points: [][]int{points}, Units: []int{units}})
				steps := stepsOf(ranks, bounds[0], len(ranks))
				for k, n := range points {
					for p, step := range steps {
						got, want := int(step) <= k, int(ranks[p]) < n
						if order == "lerf" {
							got, want = int(step) > len(points)-1-k, int(ranks[p]) >= units-n
						}
						if got != want {
							t.Fatalf("%+v, %s: the pixel at place %d of %d is replaced at the point %d: %v, "+
								"want %v", rule, order, ranks[p], units, k, got, want)
						}
					}
				}
			}
		}
	}
}

// TestPoints: what a rule replaces begins with nothing, ascends, and ends as it says.
func TestPoints(t *testing.T) {
	for _, c := range []struct {
		rule stages.Replacement
		want []int
	}{
		{stages.Replacement{Steps: 4}, []int{0, 2, 5, 8, 10}}, // half to even
		{stages.Replacement{Step: 4}, []int{0, 4, 8, 10}},
		{stages.Replacement{}, []int{0, 3, 6, 9, 10}},
		{stages.Replacement{Step: 2, Limit: 5}, []int{0, 2, 4, 5}},
		{stages.Replacement{Shares: []float64{0.29, 1}}, []int{0, 2, 10}},
	} {
		if got := c.rule.Points(10, 3); !slices.Equal(got, c.want) {
			t.Errorf("%+v has the points %v, want %v", c.rule, got, c.want)
		}
	}
}

// TestSourcesOf: an input may be a stage, or have stages on the ids of an axis.
func TestSourcesOf(t *testing.T) {
	const experiment = "stages:\n  decay:\n    in:\n" +
		"      curves: {order: {morf: first, lerf: last.curves}}\n" +
		"      scores: auc[order=morf]\n"
	got, err := json.Marshal(sourcesOf([]byte(experiment), "decay"))
	want := `[{"stage":"first","axes":["order"],"ids":["morf"]},` +
		`{"stage":"last","axes":["order"],"ids":["lerf"]},{"stage":"auc","axes":[],"ids":[]}]`
	if err != nil || string(got) != want {
		t.Errorf("the sources are %s, want %s: %v", got, want, err)
	}
	if sourcesOf([]byte("stages: 3"), "decay") != nil || sourcesOf([]byte(experiment), "other") != nil {
		t.Error("there are sources of a stage that isn't there")
	}
}
