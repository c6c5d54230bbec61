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

// sourcesOf asks a stage for what it reads from outside, and digests the files. One with item inputs lists a
// source for each item.
func (r *resolver) sourcesOf(n *node) error {
	var ids []string
	joined := n.Stage.Primary() >= 0
	if joined {
		calls, err := r.callIDs(n)
		if err != nil {
			return err
		}
		ids = calls.ids
	}
	sources, err := n.Cell.Sources(ids)
	switch {
	case err != nil:
		return err
	case joined && len(sources) != len(ids):
		return plan.Bug("stage %s lists %d sources for %d items", n.Stage.Name, len(sources), len(ids))
	case !joined && n.Stage.Relation != stages.Whole:
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
		sources = r.ofShare(sources)
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
