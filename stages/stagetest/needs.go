package stagetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Lacks skips a test that needs something this machine doesn't have. It fails the test instead if
// RUNEXP_REQUIRE=1, as set by make test, or CI=true require every test.
func Lacks(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("RUNEXP_REQUIRE") == "1" || os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("skipped: " + why)
}

// LacksDevice is [Lacks] for the error of a device or a precision that can't be used, except where nothing
// can be installed for it: what the hardware lacks is required nowhere.
func LacksDevice(t testing.TB, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "pip install") {
		Lacks(t, err.Error())
	}
	t.Skipf("skipped: %v", err)
}

// Shared returns a folder of the official numbers, real nets and photographs next to the project. They are
// too large for the repository: without them a test is skipped, and fails only under CI=true.
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
			t.Fatalf("no %s next to the project", below)
		}
		t.Skipf("skipped: no %s next to the project", below)
	}
	return dir
}

// Sample returns one in k cases of a sweep, in turns by $TURN, and logs how many it leaves out. With
// RUNEXP_FULL=1, as set by make test, it returns all.
func Sample[T any](t testing.TB, k int, all []T) (some []T) {
	t.Helper()
	if os.Getenv("RUNEXP_FULL") == "1" {
		return all
	}
	turn, _ := strconv.Atoi(os.Getenv("TURN"))
	for i := turn % k; i < len(all); i += k {
		some = append(some, all[i])
	}
	t.Logf("left out: %d of %d cases of %s", len(all)-len(some), len(all), t.Name())
	return some
}

// InTurn skips a test that takes long unless it is turn i of k, by $TURN. With RUNEXP_FULL=1 it skips none.
func InTurn(t testing.TB, i, k int) {
	t.Helper()
	turn, _ := strconv.Atoi(os.Getenv("TURN"))
	if os.Getenv("RUNEXP_FULL") != "1" && turn%k != i {
		t.Skipf("skipped; left out: %s, which runs in one of %d turns", t.Name(), k)
	}
}

// SampleOf is [Sample] of cases with names.
func SampleOf[V any](t testing.TB, k int, all map[string]V) map[string]V {
	t.Helper()
	some := map[string]V{}
	for _, name := range Sample(t, k, slices.Sorted(maps.Keys(all))) {
		some[name] = all[name]
	}
	return some
}

// Root returns the project's folder: the nearest parent of the working folder with a go.mod.
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

// Race reports whether the test runs under the race detector, which slows code several times.
func Race() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
