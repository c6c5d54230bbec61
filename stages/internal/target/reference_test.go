package target

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/targets.md")

// TestReference holds that docs/targets.md lists the functions and presets as they are.
func TestReference(t *testing.T) {
	const page = "../../../docs/targets.md"
	const begin, end = "<!-- made by make generate: functions -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(b), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	}
	want := head + begin + Reference() + end + tail
	switch {
	case want == string(b):
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s isn't what the functions and presets are: run make generate", page)
	}
	for _, o := range functions {
		if !strings.Contains(want, "`"+o.name+"(") {
			t.Errorf("%s isn't listed", o.name)
		}
	}
}
