package zoo

import (
	"slices"
	"strings"
	"testing"
)

// The table holds what another run finds again: no column is a matter of how busy the machine was.
func TestTableIsReproducible(t *testing.T) {
	all := readTable(t)
	if len(all) == 0 {
		t.Fatalf("%s has other columns than %v", tableFile, head)
	}
	if at := slices.IndexFunc(head, func(c string) bool { return strings.Contains(c, "time") }); at >= 0 {
		t.Errorf("the column %q is a measurement of one run", head[at])
	}
	for _, r := range all {
		if got := parseRow(t, r.cells()); got.key() != r.key() || got.Nodes != r.Nodes ||
			got.Final != r.Final {
			t.Errorf("%s is read again as %+v", r.key(), got)
		}
	}
}
