package webpage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
)

// sourceOf is a version with the scores of two methods, of which the store has the maps: of method a, all
// pixels are this. The maps of gone are in the store no more.
func sourceOf(t *testing.T, pixel float32, gone string, scores ...float64) Source {
	t.Helper()
	cells, items := "", "cell/item,x,y\n"
	var s Source
	for i, method := range []string{"a", "b"} {
		place := "[method=" + method + "]"
		cells += line("s"+place, scores[i])
		items += fmt.Sprintf("%q,%g,%g\n", "s"+place, scores[i]-1, scores[i]+1)
		payload := stages.NewTensor([]float32{float32(i) * 7, float32(1-i) * pixel}, 1, 2).Encode()
		p := &results.CellMaps{Cell: "maps" + place, Coord: []stages.Coord{{Axis: "method", ID: method}},
			Maps: &results.Payloads{IDs: []string{"x", "y"},
				Digest: func(int) stages.Digest { return stages.Sum(payload) },
				Load: func(int) ([]byte, error) {
					if method == gone {
						return nil, fmt.Errorf("%s has no maps", method)
					}
					return payload, nil
				}}}
		s.Maps = append(s.Maps, p)
	}
	v, err := publish.ReadVersion(folder(t, map[string]string{"cells/s.jsonl": cells, "items/s.csv": items}))
	if err != nil {
		t.Fatal(err)
	}
	s.Version = v
	return s
}

// TestScoresBefore: below the map of before stands the score that it had, and maps that stayed have one
// version.
func TestScoresBefore(t *testing.T) {
	before := sourceOf(t, 1, "", 10, 20)
	m, err := newModel(sourceOf(t, 2, "", 11, 20), &before)
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Changes.Summary; !strings.HasPrefix(s, "1 score with the same definition as before: outside") ||
		m.Changes.Scores[0].Within != "no" {
		t.Errorf("the changes begin with %q, and of the score %+v", s, m.Changes.Scores[0])
	}
	was := m.Changes.Was
	if len(was) != 1 || len(was[0].Cells) != 1 || was[0].Cells[0].IDs[0] != "a" {
		t.Fatalf("of the scores before, the page has %+v, not that of a", was)
	}
	if c := was[0].Cells[0]; fmt.Sprint(c.Values) != "[9 11]" || m.Items[c.Items][1] != "y" {
		t.Errorf("the items' scores before are %v of %v, not 9 and 11", c.Values, m.Items[c.Items])
	}
	if n := len(m.Maps[0].Cells); n != 3 || m.Maps[0].Cells[2].IDs[1] != "before" {
		t.Errorf("the page has %d cells of maps, not two of now and one of before", n)
	}
}

// TestComparedByBoth: a map whose other version is gone is compared with none, and isn't among those that
// the page names as missing.
func TestComparedByBoth(t *testing.T) {
	before := sourceOf(t, 1, "a", 10, 20)
	m, err := newModel(sourceOf(t, 2, "", 11, 20), &before)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Maps[0].Cells) != 2 || len(m.Changes.Was) != 0 || len(m.Left) != 0 {
		t.Errorf("%d cells of maps, scores before %v, left out %q", len(m.Maps[0].Cells), m.Changes.Was,
			m.Left)
	}
}
