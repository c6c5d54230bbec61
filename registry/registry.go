// Package registry is the table of contents: [Builtin] (builtin.go) names every stage of the program in
// a [Set] (registry.go). From the declarations of the stages, which also parse and run, it makes the
// reference text and the README's table (reference.go) and the JSON schema of the experiment language
// (schema.go). It loads models to tell which stages fit them (models.go) and what reads them
// (inspect.go), measures how they are fed (measure.go), and hands the command what it borrows from families
// (tools.go).
package registry

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Set is a list of stages, found by name. It doesn't change once made.
type Set struct {
	stages []*stages.Stage // sorted by name
}

// New returns the set of the given stages. A test makes sure that no two of [Builtin] have one name.
func New(list ...stages.Stage) *Set {
	s := &Set{}
	for _, st := range list {
		s.stages = append(s.stages, &st)
	}
	slices.SortStableFunc(s.stages, func(a, b *stages.Stage) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Lookup returns the stage called name.
func (s *Set) Lookup(name string) (*stages.Stage, bool) {
	i := slices.IndexFunc(s.stages, func(st *stages.Stage) bool { return st.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.stages[i], true
}

// Names returns the names of all stages, sorted.
func (s *Set) Names() (names []string) {
	for _, st := range s.stages {
		names = append(names, st.Name)
	}
	return names
}

// Family returns the stages whose names begin with family and a slash, or all for "", sorted by name.
func (s *Set) Family(family string) (found []*stages.Stage) {
	for _, st := range s.stages {
		if family == "" || strings.HasPrefix(st.Name, family+"/") {
			found = append(found, st)
		}
	}
	return found
}
