package resolve

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// manySources is the length of a list of sources from which on a garbage collection is run: the list isn't
// needed any more once it is in [key.Sources], and would double the memory of the process before it is
// collected.
const manySources = 100_000

// findSources lists the sources of a cell's stage, and digests their files.
func (r *Resolver) findSources(id *key.Identity) (*key.Sources, error) {
	divided := r.whole != nil && id.Cell.Stage.Primary() < 0 && id.Cell.Stage.Relation != stages.Whole
	if divided {
		if all := r.whole.Identity(id.Cell).Sources; all != nil {
			return r.ownSources(all), nil
		}
	}
	sources, err := r.listSources(id)
	if err != nil {
		return nil, err
	}
	if divided {
		sources = slices.DeleteFunc(sources, func(s stages.Source) bool { return !r.share.Owns(s.ID) })
	}
	l, err := key.NewSources(sources, r.texts, r.fileDigest)
	if sources = nil; l.Len() > manySources {
		runtime.GC()
	}
	return l, err
}

// listSources returns a stage's sources: one for each item if it has item inputs, or else those of all
// shares.
func (r *Resolver) listSources(id *key.Identity) ([]stages.Source, error) {
	if id.Cell.Stage.Primary() >= 0 {
		calls, err := r.Keys.CallIDs(id)
		if err != nil {
			return nil, err
		}
		sources, err := id.Cell.Sources(calls.All())
		if err == nil && len(sources) != calls.Len() {
			const text = "stage %s lists %d sources for %d items"
			err = plan.Bug(text, id.Cell.Stage.Name, len(sources), calls.Len())
		}
		return sources, err
	}
	sources, err := id.Cell.Sources(nil)
	if err != nil || id.Cell.Stage.Relation == stages.Whole {
		return sources, err
	}
	if r.Plan.Limit > 0 && len(sources) > r.Plan.Limit {
		sources = sources[:r.Plan.Limit]
	}
	if len(sources) == 0 {
		return nil, plan.ErrNoItem
	}
	seen := make(map[string]bool, len(sources))
	for i := range sources {
		if seen[sources[i].ID] {
			return nil, fmt.Errorf("two items are called %q", sources[i].ID)
		}
		seen[sources[i].ID] = true
	}
	return sources, nil
}
