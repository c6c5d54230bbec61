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
	files []stages.Digest    // of the files' bytes, zero for a source without one; nil if none has one
	with  [][2]stages.Digest // of those of further files; nil if no source has one
}

func (l *sourceList) len() int {
	if l == nil {
		return 0
	}
	return len(l.list)
}

// unchanged returns an error if the file of a source has other bytes than it had.
func (l *sourceList) unchanged(s *store.Store, i int) error {
	for k, path := range l.list[i].With {
		if path == "" {
			continue
		}
		if err := s.FileUnchanged(path, l.with[i][k]); err != nil {
			return err
		}
	}
	if l.files == nil || l.list[i].File == "" {
		return nil
	}
	return s.FileUnchanged(l.list[i].File, l.files[i])
}

// listSources asks a stage for what it reads from outside. One with item inputs lists a source for each item;
// one without lists the share's.
func (r *resolver) listSources(n *node) ([]stages.Source, error) {
	if n.Stage.Primary() >= 0 {
		calls, err := r.callIDs(n)
		if err != nil {
			return nil, err
		}
		sources, err := n.Cell.Sources(calls.ids)
		if err == nil && len(sources) != len(calls.ids) {
			err = plan.Bug("stage %s lists %d sources for %d items", n.Stage.Name, len(sources),
				len(calls.ids))
		}
		return sources, err
	}
	if n.Stage.Relation == stages.Whole {
		return n.Cell.Sources(nil)
	}
	if r.all != nil && r.all.nodes[n.Index].sources != nil {
		return r.ofShare(r.all.nodes[n.Index].sources.list), nil // in the same memory
	}
	sources, err := n.Cell.Sources(nil)
	if err != nil {
		return nil, err
	}
	if r.plan.Limit > 0 && len(sources) > r.plan.Limit {
		sources = sources[:r.plan.Limit]
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
	return r.ofShare(sources), nil
}

// sourcesOf lists what a stage reads from outside, and digests the files.
func (r *resolver) sourcesOf(n *node) error {
	sources, err := r.listSources(n)
	if err != nil {
		return err
	}
	l := &sourceList{list: sources}
	for i := range sources {
		for k, path := range sources[i].With {
			if path == "" {
				continue
			}
			if l.with == nil {
				l.with = make([][2]stages.Digest, len(sources))
			}
			if l.with[i][k], err = r.fileDigest(path); err != nil {
				return fmt.Errorf("%s: %w", sources[i].ID, err)
			}
		}
		if sources[i].File == "" {
			continue
		}
		if l.files == nil {
			l.files = make([]stages.Digest, len(sources))
		}
		if l.files[i], err = r.fileDigest(sources[i].File); err != nil {
			return fmt.Errorf("%s: %w", sources[i].ID, err)
		}
	}
	n.sources = l
	return nil
}
