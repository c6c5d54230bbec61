package stagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// Lacks skips a test because of something that this machine lacks, and says what. RUNEXP_REQUIRE=1, as make
// test sets it, and CI=true ask for every test: then it fails.
func Lacks(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("RUNEXP_REQUIRE") == "1" || os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("skipped: " + why)
}

// Shared returns a folder of the material that lies beside the project: official numbers, real nets and
// photographs. It is too large for the project, so without it a test is skipped, and fails only where
// CI=true.
func Shared(t testing.TB, path ...string) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(append([]string{"..", "shared"}, path...)...)
	dir := filepath.Join(root, below)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("there is no %s beside the project", below)
		}
		t.Skipf("skipped: there is no %s beside the project", below)
	}
	return dir
}

// Root returns the project's folder: the nearest one above the working folder that has a go.mod.
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

// Race reports whether the test runs with the race detector, under which code takes several times as long.
func Race() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
