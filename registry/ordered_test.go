package registry

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// What people read shows ids in the order in which they are written, so reports have that order in their
// keys. Nothing else does: reordering an axis costs it nothing.
func TestReportsAloneAreOrdered(t *testing.T) {
	all := Builtin()
	for _, name := range all.Names() {
		s, _ := all.Lookup(name)
		report := strings.HasPrefix(s.Name, "report/")
		if s.Ordered != (report && s.Relation == stages.Whole) { // an itemwise one shows no ids
			t.Errorf("%s: Ordered is %v", s.Name, s.Ordered)
		}
	}
}
