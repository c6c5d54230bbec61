package pipeline

import (
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A sourceList is what a stage reads from outside. A nil list has no sources.
type sourceList struct {
	list  []stages.Source
	files []stages.Digest // of the files' bytes, zero for a source without one; nil if none has one
}

func (l *sourceList) len() int {
	if l == nil {
		return 0
	}
	return len(l.list)
}

// unchanged returns an error if the file of a source has other bytes than it had.
func (l *sourceList) unchanged(s *store.Store, i int) error {
	if l.files == nil || l.list[i].File == "" {
		return nil
	}
	return s.FileUnchanged(l.list[i].File, l.files[i])
}

// sourcesOf asks a stage for what it reads from outside.
func (r *resolver) sourcesOf(n *node) error {
	if n.Stage.Primary() >= 0 {
		return r.joinedSources(n)
	}
	sources, err := n.Cell.Sources(nil)
	if err != nil {
		return err
	}
	if n.Stage.Relation != stages.Whole {
		if r.plan.Limit > 0 && len(sources) > r.plan.Limit {
			sources = sources[:r.plan.Limit]
		}
		if len(sources) == 0 {
			return plan.ErrNoItem
		}
		seen := make(map[string]bool, len(sources))
		for i := range sources {
			if seen[sources[i].ID] {
				return fmt.Errorf("two items are called %q", sources[i].ID)
			}
			seen[sources[i].ID] = true
		}
	}
	return r.keepSources(n, sources)
}

// keepSources digests the files of sources and makes them n's.
func (r *resolver) keepSources(n *node, sources []stages.Source) error {
	l := &sourceList{list: sources}
	for i := range sources {
		if sources[i].File == "" {
			continue
		}
		d, _, err := r.store.FileDigest(sources[i].File)
		if err != nil {
			return fmt.Errorf("%s: %w", sources[i].ID, err)
		}
		if l.files == nil {
			l.files = make([]stages.Digest, len(sources))
		}
		l.files[i] = d
	}
	n.sources = l
	return nil
}

// joinedSources asks a stage with both items and sources for the sources of
// its items.
func (r *resolver) joinedSources(n *node) error {
	ids, err := r.primaryIDs(n)
	if err != nil {
		return err
	}
	sources, err := n.Cell.Sources(ids.ids)
	if err != nil {
		return err
	}
	if len(sources) != ids.len() {
		return plan.Bug("stage %s lists %d sources for %d items", n.Stage.Name, len(sources), ids.len())
	}
	return r.keepSources(n, sources)
}
