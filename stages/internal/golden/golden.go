// Package golden finds the numbers that official implementations produced, and
// keeps the list of which of them are tested and by what. See golden.csv.
package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder with the official numbers, which lies beside the
// project. Without it the test is skipped, unless RUNEXP_REQUIRE=1 or CI=true
// ask for every test: then it fails.
func Dir(t testing.TB) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "..", "shared", "golden")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("RUNEXP_REQUIRE") == "1" || os.Getenv("CI") == "true" {
			t.Fatalf("the official numbers are missing: %v", err)
		}
		t.Skipf("skipped without the official numbers in %s", filepath.Join("..", "shared", "golden"))
	}
	return dir
}

// Root returns the project's folder: the nearest one above the working folder
// that has a go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working folder")
		}
		dir = up
	}
}
