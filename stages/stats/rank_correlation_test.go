package stats

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestRankCorrelation checks ρ by hand: of images with a score of both, in each case.
func TestRankCorrelation(t *testing.T) {
	cells := []stages.Data{
		cell(stages.Higher, []float64{0.1, 0.2, 0.3, nan, 0.5}, "method", "cam", "net", "a"),
		cell(stages.Higher, []float64{0.4, 0.3, 0.2, 0.9, 0.1}, "method", "ig", "net", "a"),
		// Ranks 1 3 2 4 and 1 2 3 4 differ by one twice: 1 − 6·2/(4·15) = 0.8.
		cell(stages.Higher, []float64{0.1, 0.3, 0.2, 0, 0.6}, "method", "s-ig", "net", "a"),
		cell(stages.Higher, []float64{1, 1, 1, 1, 1}, "method", "flat", "net", "a"),
		cell(stages.Higher, []float64{0.1, 0.2, 0.3, 0.4, 0.5}, "method", "ig", "net", "b"),
	}
	p := &RankCorrelationParams{Among: "method", Reference: "cam"}
	table, answer := run(t, RankCorrelation, p, cells...)
	same(t, "the table", text(table), "flat a | 4 NaN\nig a | 4 -1.000\ns-ig a | 4 0.800\n")
	same(t, "the answer", answer, "In a, **s-ig** agrees best with cam on which images are scored high: "+
		"ρ = 0.80. Without scores of cam: b.\n")
	if !strings.Contains(strings.Join(table.Keys, " "), "method net") {
		t.Errorf("keys %v", table.Keys)
	}
}
