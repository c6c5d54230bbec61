// Package registry is the table of contents: [Builtin] (builtin.go) names every stage of the program in
// a [Set] (registry.go). From the declarations of the stages, which also parse and run, it makes the
// reference text and the README's table (reference.go) and the JSON schema of the experiment language
// (schema.go). It loads models to tell which stages fit them (models.go) and what reads them
// (inspect.go), and hands the command what it borrows from families (tools.go).
package registry

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Set is a list of stages, found by name. It doesn't change once made.
type Set struct {
	stages []stages.Stage // sorted by name
}

// New returns the set of the given stages. A test makes sure that no two of [Builtin] have one name.
func New(list ...stages.Stage) *Set {
	s := &Set{stages: slices.Clone(list)}
	slices.SortStableFunc(s.stages, func(a, b stages.Stage) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Lookup returns the stage called name.
func (s *Set) Lookup(name string) (*stages.Stage, bool) {
	for i := range s.stages {
		if s.stages[i].Name == name {
			return &s.stages[i], true
		}
	}
	return nil, false
}

// Names returns the names of all stages, sorted.
func (s *Set) Names() []string {
	names := make([]string, len(s.stages))
	for i := range s.stages {
		names[i] = s.stages[i].Name
	}
	return names
}

// Family returns the stages whose names begin with family and a slash, or all for "", sorted by name.
func (s *Set) Family(family string) []*stages.Stage {
	var found []*stages.Stage
	for i := range s.stages {
		if family == "" || strings.HasPrefix(s.stages[i].Name, family+"/") {
			found = append(found, &s.stages[i])
		}
	}
	return found
}
