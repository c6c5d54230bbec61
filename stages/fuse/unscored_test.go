package fuse

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestMetaRankUnscored checks that a method without a defined score doesn't prevent the ranking of the
// others, and is reported.
func TestMetaRankUnscored(t *testing.T) {
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
