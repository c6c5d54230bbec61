package pipeline

import (
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A sourceList is what a stage reads from outside. It stays in memory, a source for every image of a data set,
// so it keeps only those fields of a [stages.Source] that any of them has. A nil list has no sources.
type sourceList struct {
	ids   []string
	notes []string
	paths []string
	files []stages.Digest // of the files' bytes, zero for a source without one
	with  []furtherFiles
}

// furtherFiles are those of a source.
type furtherFiles struct {
	paths   [2]string
	digests [2]stages.Digest // zero where there's no path
}

// newSourceList takes sources whose files nobody has digested yet.
func newSourceList(sources []stages.Source) *sourceList {
	l := &sourceList{ids: make([]string, len(sources))}
	for i := range sources {
		s := &sources[i]
		l.ids[i] = s.ID
		if s.Note != "" {
			set(&l.notes, len(sources), i, s.Note)
		}
		if s.File != "" {
			set(&l.paths, len(sources), i, s.File)
		}
		if s.With != [2]string{} {
			set(&l.with, len(sources), i, furtherFiles{paths: s.With})
		}
	}
	return l
}

// set makes x the value at i of a list of n that is nil while all values are zero.
func set[T any](list *[]T, n, i int, x T) {
	if *list == nil {
		*list = make([]T, n)
	}
	(*list)[i] = x
}

// valueAt returns a value of such a list.
func valueAt[T any](list []T, i int) (x T) {
	if list != nil {
		x = list[i]
	}
	return x
}

func (l *sourceList) len() int {
	if l == nil {
		return 0
	}
	return len(l.ids)
}

// at returns source i.
func (l *sourceList) at(i int) stages.Source {
	return stages.Source{ID: l.ids[i], File: valueAt(l.paths, i), Note: valueAt(l.notes, i),
		With: valueAt(l.with, i).paths}
}

func (l *sourceList) all() []stages.Source {
	list := make([]stages.Source, l.len())
	for i := range list {
		list[i] = l.at(i)
	}
	return list
}

// unchanged returns an error if the file of a source has other bytes than it had.
func (l *sourceList) unchanged(s *store.Store, i int) error {
	with := valueAt(l.with, i)
	for k, path := range with.paths {
		if path == "" {
			continue
		}
		if err := s.FileUnchanged(path, with.digests[k]); err != nil {
			return err
		}
	}
	if path := valueAt(l.paths, i); path != "" {
		return s.FileUnchanged(path, l.files[i])
	}
	return nil
}

// listSources asks a stage for what it reads from outside. One with item inputs lists a source for each item;
// one without lists those of all shares.
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
	return sources, nil
}

// sourcesOf lists what a stage reads from outside, and digests the files.
func (r *resolver) sourcesOf(n *node) error {
	shared := r.all != nil && n.Stage.Primary() < 0 && n.Stage.Relation != stages.Whole
	if shared && r.all.nodes[n.Index].sources != nil {
		n.sources = r.all.nodes[n.Index].sources.ownedBy(r.Share)
		return nil
	}
	sources, err := r.listSources(n)
	if err != nil {
		return err
	}
	l := newSourceList(sources)
	if shared {
		l = l.ownedBy(r.Share)
	}
	for i, path := range l.paths {
		if path == "" {
			continue
		}
		d, err := r.fileDigest(path)
		if err != nil {
			return fmt.Errorf("%s: %w", l.ids[i], err)
		}
		set(&l.files, l.len(), i, d)
	}
	for i := range l.with {
		for k, path := range l.with[i].paths {
			if path == "" {
				continue
			}
			if l.with[i].digests[k], err = r.fileDigest(path); err != nil {
				return fmt.Errorf("%s: %w", l.ids[i], err)
			}
		}
	}
	n.sources = l
	return nil
}
