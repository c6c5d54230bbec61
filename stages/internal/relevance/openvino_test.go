package relevance

import (
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestExamplesInBFloat16 runs every example of every operator by every rule in bfloat16.
func TestExamplesInBFloat16(t *testing.T) {
	d := stages.Device{Class: "cpu", Threads: 1, Precision: stages.BFloat16}
	if err := library(t).Has(d); err != nil {
		t.Skipf("skipped: %v", err)
	}
	compareExamples(t, d, nil, func(string) float64 { return 0.03 })
}
