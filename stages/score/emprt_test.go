package score

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestEMPRT checks the rise of the entropy by hand, that neither scale nor offset of a map counts, and where
// it is undefined.
func TestEMPRT(t *testing.T) {
	items := func(v ...[]byte) []stages.Data { return []stages.Data{stagetest.Items(nil, v...)} }
	r := stagetest.Run(t, EMPRT, nil, map[string][]stages.Data{
		"maps": items(pixels(0, 0, 1, 1), pixels(0, 1, 2, 3), pixels(0, 1, 2, 3), pixels(1, 1, 1, 1),
			pixels(0, 0, 1, 1)),
		"other": items(pixels(0, 1, 2, 3), pixels(5, 5, 9, 9), pixels(10, 30, 20, 40), pixels(0, 1, 2, 3),
			pixels(0, 1, 2, float32(math.NaN()))),
	})
	check(t, r, "scores", 1e-12, 1, -0.5, 0, nan, nan) // of ln 2 and ln 4
}
