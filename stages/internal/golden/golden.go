// Package golden finds the numbers that official implementations produced, and
// keeps the list of which of them are tested and by what. See golden.csv.
package golden

import (
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// Dir returns the folder with the official numbers, as [stagetest.Shared] does.
func Dir(t testing.TB) string {
	t.Helper()
	return stagetest.Shared(t, "golden")
}
