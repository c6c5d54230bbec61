package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// What people read shows ids in the order in which they are written, and by their labels, so reports have
// these in their keys, and answers may. Nothing else does: reordering or labelling an axis costs it nothing.
func TestReportsAloneAreOrdered(t *testing.T) {
	all := Builtin()
	for _, name := range all.Names() {
		s, _ := all.Lookup(name)
		report := strings.HasPrefix(s.Name, "report/")
		answers := slices.ContainsFunc(s.Outputs, func(p stages.Port) bool { return p.Name == "answer" })
		shows := s.Relation == stages.Whole // an itemwise stage shows no ids
		if s.Ordered && !(shows && (report || answers)) || !s.Ordered && shows && report {
			t.Errorf("%s: Ordered is %v", s.Name, s.Ordered)
		}
	}
}
