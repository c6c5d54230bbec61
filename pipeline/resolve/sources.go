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

// findSources lists the sources of n's stage, and digests their files.
func (r *Resolver) findSources(n *Cell) error {
	l, err := r.sourcesOf(n)
	if err != nil {
		return err
	}
	id := *n.ID()
	id.Sources = l
	n.identity.Store(&id)
	if l.Len() > manySources {
		runtime.GC()
	}
	return nil
}

func (r *Resolver) sourcesOf(n *Cell) (*key.Sources, error) {
	divided := r.whole != nil && n.Stage.Primary() < 0 && n.Stage.Relation != stages.Whole
	if divided {
		if all := r.whole.Cells[n.Index].ID().Sources; all != nil {
			return r.ownSources(all), nil
		}
	}
	sources, err := r.listSources(n)
	if err != nil {
		return nil, err
	}
	if divided {
		sources = slices.DeleteFunc(sources, func(s stages.Source) bool { return !r.share.Owns(s.ID) })
	}
	return key.NewSources(sources, r.texts, r.fileDigest)
}

// listSources returns a stage's sources: one for each item if it has item inputs, or else those of all
// shares.
func (r *Resolver) listSources(n *Cell) ([]stages.Source, error) {
	if n.Stage.Primary() >= 0 {
		calls, err := r.Keys.CallIDs(n.ID())
		if err != nil {
			return nil, err
		}
		sources, err := n.Cell.Sources(calls.All())
		if err == nil && len(sources) != calls.Len() {
			err = plan.Bug("stage %s lists %d sources for %d items", n.Stage.Name, len(sources), calls.Len())
		}
		return sources, err
	}
	sources, err := n.Cell.Sources(nil)
	if err != nil || n.Stage.Relation == stages.Whole {
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
