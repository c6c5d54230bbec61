// Package registry is the table of contents: [Builtin] names every stage the
// program has, one a line. Reference text, the JSON schema of the experiment
// language and the README's table are made here, from the same declarations
// that parse and run.
package registry

import (
	"sort"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Set is a list of stages, found by name. It doesn't change once made.
type Set struct {
	stages []stages.Stage // sorted by name
	index  map[string]int
}

// New returns the set of the given stages. Of two with the same name it keeps
// the last; a test makes sure that [Builtin] has no such pair.
func New(list ...stages.Stage) *Set {
	s := &Set{stages: append([]stages.Stage(nil), list...), index: make(map[string]int, len(list))}
	sort.SliceStable(s.stages, func(i, j int) bool { return s.stages[i].Name < s.stages[j].Name })
	for i := range s.stages {
		s.index[s.stages[i].Name] = i
	}
	return s
}

// Lookup returns the stage called name.
func (s *Set) Lookup(name string) (*stages.Stage, bool) {
	i, ok := s.index[name]
	if !ok {
		return nil, false
	}
	return &s.stages[i], true
}

// Names returns the names of all stages, sorted.
func (s *Set) Names() []string {
	names := make([]string, len(s.stages))
	for i := range s.stages {
		names[i] = s.stages[i].Name
	}
	return names
}

// Family returns the stages whose names begin with family and a slash, or all
// for "", sorted by name.
func (s *Set) Family(family string) []*stages.Stage {
	var found []*stages.Stage
	for i := range s.stages {
		if family == "" || strings.HasPrefix(s.stages[i].Name, family+"/") {
			found = append(found, &s.stages[i])
		}
	}
	return found
}

// Title returns the first line of a stage's documentation.
func Title(s *stages.Stage) string {
	title, _, _ := strings.Cut(s.Doc, "\n")
	return title
}
