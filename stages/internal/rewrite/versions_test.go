package rewrite

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestVersions holds that every operator that came or changed after opset 17 has a converter from that
// version on, or is refused, and that nothing newer than Newest is in the table.
func TestVersions(t *testing.T) {
	// Operators without a derivative at any version: no rule reads what changed.
	underived := []string{"DFT", "LpPool"}
	f, err := os.Open("testdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	newest := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		field := strings.Fields(s.Text())
		if field[0] == "#" {
			continue
		}
		version, err := strconv.Atoi(field[0])
		if err != nil {
			t.Fatal(err)
		}
		newest = max(newest, version)
		op := field[1]
		if field[2] == "wider" || slices.Contains(newer, op) || slices.Contains(underived, op) {
			continue
		}
		if !slices.ContainsFunc(converters(), func(c converter) bool {
			return c.op == op && c.from <= version && c.to == Newest
		}) {
			t.Errorf("%s %s at opset %d: no converter", op, field[2], version)
		}
	}
	if newest != Newest {
		t.Errorf("the table goes up to opset %d, and Newest is %d", newest, Newest)
	}
}
