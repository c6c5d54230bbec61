package key

import (
	"fmt"
	"strings"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// Sources are the outside inputs of a stage. There may be a source for every image of a data set, so only
// ids and digests stay in memory. A nil list has no sources.
type Sources struct {
	ids   []string
	texts *store.Texts // of all cells of the experiment, see sourceText
	first int          // the row of source 0

	// Digests of the files, zero for a source without a file; nil if no source has one.
	files [sourceFiles][]stages.Digest
}

// sourceFiles is how many files a source may have: File, and those in With.
const sourceFiles = 3

// SourceTexts is how many texts of a source are in [store.Texts].
const SourceTexts = 1 + sourceFiles

// sourceText returns a text of a source that isn't kept in memory: the note, or the path of file k - 1.
func sourceText(s *stages.Source, k int) string {
	switch k {
	case 0:
		return s.Note
	case 1:
		return s.File
	}
	return s.With[k-2]
}

// NewSources returns a list of sources, whose texts it adds to texts, given a function that digests a file.
func NewSources(sources []stages.Source, texts *store.Texts,
	digest func(path string) (stages.Digest, error)) (l *Sources, err error) {
	l = &Sources{ids: make([]string, len(sources)), texts: texts}
	for i := range sources {
		l.ids[i] = strings.Clone(sources[i].ID) // it may be a part of a longer text
	}
	l.first = texts.Add(len(sources), func(i, k int) string { return sourceText(&sources[i], k) })
	for i := range sources {
		for k := range l.files {
			path := sourceText(&sources[i], 1+k)
			if path == "" {
				continue
			}
			if l.files[k] == nil {
				l.files[k] = make([]stages.Digest, l.Len())
			}
			if l.files[k][i], err = digest(path); err != nil {
				return nil, fmt.Errorf("%s: %w", l.ids[i], err)
			}
		}
	}
	return l, nil
}

// Where returns the sources whose ids have a property.
func (l *Sources) Where(has func(id string) bool) *Sources {
	var own []stages.Source // as little memory as a part of a long list needs
	var files [sourceFiles][]stages.Digest
	for i, id := range l.ids {
		if !has(id) {
			continue
		}
		own = append(own, l.At(i))
		for k := range files {
			if l.files[k] != nil {
				files[k] = append(files[k], l.files[k][i])
			}
		}
	}
	part, _ := NewSources(own, l.texts, func(string) (d stages.Digest, err error) { return d, nil })
	part.files = files
	return part
}

// Len returns the number of sources.
func (l *Sources) Len() int {
	if l == nil {
		return 0
	}
	return len(l.ids)
}

// At returns source i.
func (l *Sources) At(i int) stages.Source {
	return stages.Source{ID: l.ids[i], Note: l.note(i), File: l.path(0, i),
		With: [2]string{l.path(1, i), l.path(2, i)}}
}

func (l *Sources) note(i int) string { return l.texts.At(l.first+i, 0) }

// path returns the path of file k of source i, "" without one.
func (l *Sources) path(k, i int) string { return l.texts.At(l.first+i, 1+k) }

// fileDigest returns the digest of file k of source i, zero without one.
func (l *Sources) fileDigest(k, i int) (d stages.Digest) {
	if l.files[k] != nil {
		d = l.files[k][i]
	}
	return d
}

// All returns all sources.
func (l *Sources) All() []stages.Source {
	list := make([]stages.Source, l.Len())
	for i := range list {
		list[i] = l.At(i)
	}
	return list
}

// ID returns the id of source i.
func (l *Sources) ID(i int) string { return l.ids[i] }

// IDs returns the names of the sources, in the same memory.
func (l *Sources) IDs() *IDs {
	if l == nil {
		return &IDs{}
	}
	return &IDs{ids: l.ids}
}

// Unchanged returns an error if a file of source i has changed, which check finds out.
func (l *Sources) Unchanged(i int, check func(path string, digest stages.Digest) error) error {
	if l == nil {
		return nil
	}
	for k := range l.files {
		if d := l.fileDigest(k, i); d != (stages.Digest{}) {
			if err := check(l.path(k, i), d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Digest digests the content of source i: the files' bytes and the note.
func (l *Sources) Digest(i int) stages.Digest {
	h := NewHasher("source")
	h.Text(l.note(i))
	h.Digest(l.fileDigest(0, i))
	for k := 1; k < len(l.files); k++ {
		if d := l.fileDigest(k, i); d != (stages.Digest{}) {
			h.Num(k - 1)
			h.Digest(d)
		}
	}
	return h.Sum()
}

// sources writes the digests of sources.
func (h *Hasher) sources(l *Sources) {
	h.Num(l.Len())
	for i := range l.Len() {
		h.Digest(l.Digest(i))
	}
}

// SourceNames writes the ids of sources.
func (h *Hasher) SourceNames(l *Sources) {
	for i := range l.Len() {
		h.Text(l.ids[i])
	}
}
