// Package golden finds the numbers that official implementations produced. golden.csv lists which of them are
// tested, and by which tests; its own test keeps the list complete.
package golden

import (
	"os"
	"path/filepath"
	"strings"
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

// Arrays returns the arrays of an .npz file by name, or the one of an .npy file under the file's name without
// extension.
func Arrays(t testing.TB, path string) map[string]npy.Array {
	t.Helper()
	base := filepath.Base(path)
	name, single := strings.CutSuffix(base, ".npy")
	if !single {
		z, err := npy.OpenArchive(path)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		arrays := map[string]npy.Array{}
		for _, name := range z.Names() {
			if arrays[name], err = z.Read(name); err != nil {
				t.Fatal(err)
			}
		}
		return arrays
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := npy.Decode(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return map[string]npy.Array{name: a}
}

// NPY returns a tensor as the bytes of an .npy file.
func NPY(t stages.Tensor) []byte { return append(stages.NPYHeader(t.DType, t.Shape...), t.Raw...) }
