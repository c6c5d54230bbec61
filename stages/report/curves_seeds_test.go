package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// seedCurves are the curves of one seed of a method, one of two points for each item.
func seedCurves(method, run string, points ...float64) stages.Data {
	var payloads [][]byte
	for i := 0; i < len(points); i += 2 {
		payloads = append(payloads, stages.NewTensor(points[i:i+2], 1, 2).Encode())
	}
	d := stagetest.At(stagetest.Items(stages.Facts{"responses": "probability", "order": "morf"}, payloads...),
		"method", method)
	d.Replicate = []stages.Coord{{Axis: "run", ID: run}}
	return d
}

// TestCurvesOfSeeds averages by hand: of each image over seeds, without one that some seed leaves undefined;
// the deviation between seeds is in no interval, and curves that are the same for all seeds stay.
func TestCurvesOfSeeds(t *testing.T) {
	nan := math.NaN()
	p := CurvesParams{Line: "method", Response: "probability", Band: "none", Columns: 1}
	in := map[string][]stages.Data{"curves": {
		seedCurves("drawn", "1", 1, 0.5, 0.6, 0.2, 1, 1), seedCurves("fixed", "1", 0.3, 0.1, 0.3, 0.1, 0.3,
			0.1),
		seedCurves("drawn", "2", 0.5, 0, 0.2, 0.1, nan, 1), seedCurves("fixed", "2", 0.3, 0.1, 0.3, 0.1, 0.3,
			0.1),
	}}
	r := stagetest.Run(t, Curves, &p, in)
	// drawn: ((1+0.5)/2 + (0.6+0.2)/2)/2 and ((0.5+0)/2 + (0.2+0.1)/2)/2.
	want := map[string]string{"drawn 0.0000": "0.575 2", "drawn 1.0000": "0.200 2", "fixed 0.0000": "0.300 3",
		"fixed 1.0000": "0.100 3"}
	table := decodeTable(t, r, "points")
	for _, row := range table.Rows {
		got := fmt.Sprintf("%.3f %g", float64(row.Numbers[0]), float64(row.Numbers[3]))
		if key := strings.Join(row.Keys, " "); got != want[key] {
			t.Errorf("%s: %s, want %s", key, got, want[key])
		}
	}
	if len(table.Rows) != len(want) {
		t.Errorf("%d rows", len(table.Rows))
	}
	const told = "over 2 to 3 images, each with the mean of its curves over 2 seeds where they depend on " +
		"one; 1 curve not finite left out."
	if _, caption := drawn(t, "curves-seeds", r); !strings.Contains(caption, told) {
		t.Errorf("the caption is %q, want %q in it", caption, told)
	}
	in["curves"] = []stages.Data{seedCurves("drawn", "1", 1, 0), seedCurves("drawn", "2", nan, 0)}
	if _, err := stagetest.Try(Curves, &p, in); err == nil || !strings.Contains(err.Error(),
		"no images in common") {
		t.Error(err)
	}
}
