// Package golden finds the numbers that official implementations produced. golden.csv lists which of them are
// tested, and by which tests; its own test keeps the list complete.
package golden

import (
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// Dir returns the folder with the official numbers, as [stagetest.Shared] does.
func Dir(t testing.TB) string {
	t.Helper()
	return stagetest.Shared(t, "golden")
}

// Arrays returns the arrays of a file: see [stagetest.Arrays].
func Arrays(t testing.TB, path string) map[string]npy.Array {
	t.Helper()
	arrays, err := stagetest.Arrays(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return arrays
}

// NPY returns a tensor as the bytes of an .npy file.
func NPY(t stages.Tensor) []byte { return append(stages.NPYHeader(t.DType, t.Shape...), t.Raw...) }
