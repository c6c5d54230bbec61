package publish

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A cell of several scores that aren't all defined is named with each of them.
func TestUndefinedScoresAreToldApart(t *testing.T) {
	r := newWorld().results()
	values := Values{{"a", math.NaN()}, {"b", 1}}
	up := stages.Measure{Direction: stages.Higher}
	r.Cells = append(r.Cells, Cell{
		Name: "rise[method=ig]", Stage: "rise", Coord: []stages.Coord{{Axis: "method", ID: "ig"}}, N: 2,
		Definition: stages.Sum([]byte("rise")),
		Scores:     []Score{{"deletion", up, values.items()}, {"insertion", up, values.items()}},
	})
	_, files := fresh(t, r)
	want := "deletion of `rise[method=ig]` 1 of 2, insertion of `rise[method=ig]` 1 of 2"
	if !strings.Contains(files["README.md"], want) {
		t.Errorf("README.md is\n%s\nwithout %s", files["README.md"], want)
	}
}
