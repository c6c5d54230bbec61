package pipeline

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A sourceList is what a stage reads from outside. There may be a source for every image of a data set, so
// only ids and digests stay in memory. A nil list has no sources.
type sourceList struct {
	ids   []string
	texts *store.Texts // of all cells of the experiment, see sourceText
	first int          // the row of source 0

	// Of the files' bytes, zero for a source without one; nil if none has one.
	files [sourceFiles][]stages.Digest
}

// sourceFiles is how many files a source may have: File, and those of With.
const sourceFiles = 3

// sourceText returns a text of a source that stays in no memory: the note, or the path of file k - 1.
func sourceText(s *stages.Source, k int) string {
	switch k {
	case 0:
		return s.Note
	case 1:
		return s.File
	}
	return s.With[k-2]
}

// newSources returns a list of sources, without the digests of their files.
func (r *resolver) newSources(sources []stages.Source) *sourceList {
	l := &sourceList{ids: make([]string, len(sources)), texts: r.texts}
	for i := range sources {
		l.ids[i] = strings.Clone(sources[i].ID) // which may be a part of a longer text
	}
	l.first = r.texts.Add(len(sources), func(i, k int) string { return sourceText(&sources[i], k) })
	return l
}

func (l *sourceList) len() int {
	if l == nil {
		return 0
	}
	return len(l.ids)
}

// at returns source i.
func (l *sourceList) at(i int) stages.Source {
	return stages.Source{ID: l.ids[i], Note: l.note(i), File: l.path(0, i),
		With: [2]string{l.path(1, i), l.path(2, i)}}
}

func (l *sourceList) note(i int) string { return l.texts.At(l.first+i, 0) }

// path returns that of file k of source i, "" if there's none.
func (l *sourceList) path(k, i int) string { return l.texts.At(l.first+i, 1+k) }

// fileDigest returns that of file k of source i, zero if there's none.
func (l *sourceList) fileDigest(k, i int) (d stages.Digest) {
	if l.files[k] != nil {
		d = l.files[k][i]
	}
	return d
}

func (l *sourceList) all() []stages.Source {
	list := make([]stages.Source, l.len())
	for i := range list {
		list[i] = l.at(i)
	}
	return list
}

// unchanged returns an error if a file of source i has other bytes than it had.
func (l *sourceList) unchanged(s *store.Store, i int) error {
	if l == nil {
		return nil
	}
	for k := range l.files {
		if d := l.fileDigest(k, i); d != (stages.Digest{}) {
			if err := s.FileUnchanged(l.path(k, i), d); err != nil {
				return err
			}
		}
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

// manySources are so many that a stage's list of them, which nobody reads any more, would have memory grow
// to twice its size before it's collected.
const manySources = 100_000

// sourcesOf lists what a stage reads from outside, and digests the files.
func (r *resolver) sourcesOf(n *node) error {
	shared := r.all != nil && n.Stage.Primary() < 0 && n.Stage.Relation != stages.Whole
	if shared && r.all.nodes[n.Index].sources != nil {
		n.sources = r.owned(r.all.nodes[n.Index].sources)
		return nil
	}
	sources, err := r.listSources(n)
	if err != nil {
		return err
	}
	if shared {
		sources = slices.DeleteFunc(sources, func(s stages.Source) bool { return !r.Share.Owns(s.ID) })
	}
	l := r.newSources(sources)
	for i := range sources {
		for k := range l.files {
			path := sourceText(&sources[i], 1+k)
			if path == "" {
				continue
			}
			if l.files[k] == nil {
				l.files[k] = make([]stages.Digest, l.len())
			}
			if l.files[k][i], err = r.fileDigest(path); err != nil {
				return fmt.Errorf("%s: %w", l.ids[i], err)
			}
		}
	}
	n.sources = l
	if len(sources) > manySources {
		sources = nil
		runtime.GC()
	}
	return nil
}
