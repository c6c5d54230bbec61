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
		if s.Ordered != report {
			t.Errorf("%s: Ordered is %v", s.Name, s.Ordered)
		}
		if s.Ordered && s.Relation != stages.Whole {
			t.Errorf("%s is Ordered and isn't Whole", s.Name)
		}
	}
}
