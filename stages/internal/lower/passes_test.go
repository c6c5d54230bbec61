package lower_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
)

// TestPasses holds that the table of passes keeps every constraint, that every pass is in one, and that a
// pass has a file with its name: here, in package rewrite, or in package onnx.
func TestPasses(t *testing.T) {
	names := lower.Passes()
	constrained := map[string]bool{}
	for _, c := range lower.Constraints() {
		first, then, why := c[0], c[1], c[2]
		i, j := slices.Index(names, first), slices.Index(names, then)
		if i < 0 || j < 0 || i >= j {
			t.Errorf("%s isn't before %s in the table: %s", first, then, why)
		}
		if why == "" {
			t.Errorf("%s is before %s without a reason", first, then)
		}
		constrained[first], constrained[then] = true, true
	}
	for i, name := range names {
		if !constrained[name] {
			t.Errorf("%s: no constraint has the reason for its place", name)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("%s is in the table twice: call the second \"%s: again\"", name, name)
		}
		file, _, _ := strings.Cut(name, ":")
		operator := "op_" + strings.ReplaceAll(file, "_", "")
		if !slices.ContainsFunc([]string{file, "../rewrite/" + file, "../rewrite/" + operator,
			"../onnx/" + file}, func(path string) bool {
			_, err := os.Stat(filepath.FromSlash(path) + ".go")
			return err == nil
		}) {
			t.Errorf("%s: no file has its name", name)
		}
	}
}
