// Package registry is the table of contents: [Builtin] (builtin.go) lists every stage of the program in a
// [Set] (registry.go). From the declarations of the stages, which also parse and run, it makes the
// reference text and the README's table (reference.go, scores.go), the list of a documentation page
// (guide.go) and the JSON schema of the experiment language (schema.go); references.go finds the publications
// that they cite, names.go lists what makes the metrics of the field, and elsewhere.go finds the stages for a
// name of the field or of another library; leads.go reads which methods lead on which architecture.
// It loads models to try which stages fit them (models.go), describes a model for the command (inspect.go),
// compiles a method into a model's file (compile.go), has how much stages may deviate in other precisions
// (rounding.go), measures how a model is fed (measure.go), describes files of texts (texts.go), and gives the
// command access to functions of families (tools.go).
package registry

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Set is a list of stages, found by name. It is immutable.
type Set struct {
	stages []*stages.Stage // sorted by name
}

// New returns the set of the given stages. A test ensures that the names in [Builtin] are distinct.
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

// Family returns the stages of a family, or all for "", sorted by name.
func (s *Set) Family(family string) (found []*stages.Stage) {
	for _, st := range s.stages {
		if family == "" || strings.HasPrefix(st.Name, family+"/") {
			found = append(found, st)
		}
	}
	return found
}
