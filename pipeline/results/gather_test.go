package results

import (
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
)

// TestNamePrecision has titles and captions say what was computed faster, and leaves those of float32 alone.
func TestNamePrecision(t *testing.T) {
	for _, tt := range []struct{ precision, title, caption, none string }{
		{"", "Leaderboard", "Mean curves.", ""},
		{"passes in bfloat16", "Leaderboard, passes in bfloat16", "Mean curves. Passes in bfloat16.",
			"Passes in bfloat16."},
	} {
		c := publish.Cell{Tables: []publish.Table{{Table: stages.Table{Title: "Leaderboard"}}},
			Figures: []publish.Figure{{Caption: "Mean curves."}, {}}}
		namePrecision(&c, tt.precision)
		title, caption, none := c.Tables[0].Table.Title, c.Figures[0].Caption, c.Figures[1].Caption
		if title != tt.title || caption != tt.caption || none != tt.none {
			t.Errorf("%q, %q, %q, want %+v", title, caption, none, tt)
		}
	}
}
