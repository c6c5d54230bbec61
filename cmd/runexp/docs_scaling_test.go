package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestDocsScaling holds that the table of docs/scaling.md is what its formula gives.
func TestDocsScaling(t *testing.T) {
	const (
		images, methods, calls, shares = 1_281_167, 50, 150, 512
		start, list, models            = 0.1, 1.1e-6, 20.0
		compute, item, fold            = 0.05, 0.07e-3, 23e-6
		session, hour                  = start + list*images, 3600
		share                          = session + models + images*(methods*compute+calls*item)/shares
		closing                        = session + images*calls*fold
	)
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, gpus := range []float64{8, 64, 512} {
		all := math.Ceil(shares/gpus) * share
		efficiency := images * methods * compute / gpus / (all + closing)
		row := fmt.Sprintf("| %g | %.0f min | %.1f h | %.1f h | %.2f |", gpus, share/60,
			all/hour, closing/hour, efficiency)
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/scaling.md lacks %s", row)
		}
	}
}
