package fuse

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestMetaRankSilent holds that a method none of whose scores is defined doesn't keep the others from being
// ranked, and is counted.
func TestMetaRankSilent(t *testing.T) {
	r := run(t,
		cell(stages.Higher, []float64{1, 0}, "method", "a", "model", "vgg"),
		cell(stages.Higher, []float64{0, 0}, "method", "b", "model", "vgg"),
		cell(stages.Higher, []float64{nan, nan}, "method", "zero", "model", "vgg"),
		cell(stages.Higher, []float64{1, 0}, "method", "a", "model", "vit"),
		cell(stages.Higher, []float64{0, 0}, "method", "b", "model", "vit"),
		cell(stages.Higher, []float64{nan, nan}, "method", "zero", "model", "vit"),
	)
	got := text(table(t, r, "ranking"))
	if !strings.HasPrefix(got, "a | 1 ") || !strings.Contains(got, "\nb | 2 ") ||
		!strings.HasSuffix(got, " 0 0 0 4\n") {
		t.Errorf("the ranking is\n%s", got)
	}
	if got := string(r.Payloads["answer"][0]); !strings.HasSuffix(got,
		" Not ranked: **zero** (all 4 scores are undefined).\n") {
		t.Error(got)
	}
}
