package pipeline

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A sourceList is what a stage reads from outside. There may be a source for every image of a data set, so
// only ids and digests stay in memory. A nil list has no sources.
type sourceList struct {
	store *store.Store
	ids   []string
	notes *store.Texts // nil if no source has one
	files [3]outsideFiles
}

// outsideFiles are those of all sources: the one that Source.File names, or one of Source.With.
type outsideFiles struct {
	paths   *store.Texts    // nil if no source has one
	digests []stages.Digest // zero for a source without a file; nil if no source has one
}

func (l *sourceList) add(s stages.Source) {
	i := len(l.ids)
	l.ids = append(l.ids, strings.Clone(s.ID)) // which may be a part of a longer text
	l.put(&l.notes, i, s.Note)
	for k, path := range [...]string{s.File, s.With[0], s.With[1]} {
		l.put(&l.files[k].paths, i, path)
	}
}

// put makes text the one at i, the end, of texts that are nil while all are empty.
func (l *sourceList) put(texts **store.Texts, i int, text string) {
	if *texts == nil {
		if text == "" {
			return
		}
		*texts = l.store.NewTexts()
		for range i {
			(*texts).Append("")
		}
	}
	(*texts).Append(text)
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

func (l *sourceList) note(i int) string {
	if l.notes == nil {
		return ""
	}
	return l.notes.At(i)
}

// path returns that of file k of source i.
func (l *sourceList) path(k, i int) string {
	if l.files[k].paths == nil {
		return ""
	}
	return l.files[k].paths.At(i)
}

// fileDigest returns that of file k of source i, zero if there's none.
func (l *sourceList) fileDigest(k, i int) (d stages.Digest) {
	if l.files[k].digests != nil {
		d = l.files[k].digests[i]
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

// unchanged returns an error if a file of a source has other bytes than it had.
func (l *sourceList) unchanged(i int) error {
	if l == nil {
		return nil
	}
	for k := range l.files {
		if d := l.fileDigest(k, i); d != (stages.Digest{}) {
			if err := l.store.FileUnchanged(l.path(k, i), d); err != nil {
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
		n.sources = r.all.nodes[n.Index].sources.ownedBy(r.Share)
		return nil
	}
	sources, err := r.listSources(n)
	if err != nil {
		return err
	}
	l := &sourceList{store: r.store}
	if !shared {
		l.ids = make([]string, 0, len(sources))
	}
	for i := range sources {
		if !shared || r.Share.Owns(sources[i].ID) {
			l.add(sources[i])
		}
	}
	if len(sources) > manySources {
		sources = nil
		runtime.GC()
	}
	for k := range l.files {
		f := &l.files[k]
		if f.paths == nil {
			continue
		}
		f.digests = make([]stages.Digest, l.len())
		for i, id := range l.ids {
			if path := f.paths.At(i); path != "" {
				if f.digests[i], err = r.fileDigest(path); err != nil {
					return fmt.Errorf("%s: %w", id, err)
				}
			}
		}
	}
	n.sources = l
	return nil
}
