package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/textfile"
)

// TextChoice are the parameters that data sets of texts have in common: which texts, and what their labels
// mean.
type TextChoice struct {
	Names   string `yaml:"names" doc:"a text file with one class name per line; line i, from 0, names class i; default: the labels in sorted order" file:"read"`
	First   int    `yaml:"first" doc:"the number of the first class in the file: 1 for stars from 1 to 5" key:"-" min:"0" max:"1"`
	Corrupt string `yaml:"corrupt" doc:"records that can't be read: fail reports an error that names them, skip leaves them out with a warning" key:"-" choices:"fail|skip"`

	Count      int `yaml:"count" doc:"how many texts at most, the first of the file; 0: all" key:"-" min:"0" max:"100000000"`
	Sample     int `yaml:"sample" doc:"how many texts at most, drawn at random; those of a smaller sample are among those of a larger one; 0: all" key:"-" min:"0" max:"100000000"`
	SampleSeed int `yaml:"sample_seed" doc:"seed of the draw" key:"-" min:"0" max:"1000000000"`
	SampleSkip int `yaml:"sample_skip" doc:"how many texts of the draw are left out, its first ones, such as those on which a method was chosen: with sample: 0 all others are taken" key:"-" min:"0" max:"100000000"`
	PerClass   int `yaml:"per_class" doc:"how many texts a class at most, the first of the file or, with sample, random ones; 0: all" key:"-" min:"0" max:"100000000"`
}

func (p *TextChoice) choice() Choice {
	return Choice{Count: p.Count, Sample: p.Sample, SampleSeed: p.SampleSeed,
		SampleSkip: p.SampleSkip, PerClass: p.PerClass}
}

// textOutputs are the output ports of data sets of texts.
var textOutputs = []stages.Port{
	{Name: "tokens", Type: stages.Tokens, Doc: "i64 [3,n]: ids, types, and 1 for special tokens"},
	{Name: "words", Type: stages.WordsType, Doc: "the text and the places of its tokens, for pictures"},
	{Name: "labels", Type: stages.Labels, Doc: "the class, from 0"},
	{Name: "masks", Type: stages.Masks, Doc: "u8 [1,n]: 1 on tokens of the rationale, 255 on special tokens"},
}

// A textSet is the index of a file of texts, and what its labels mean.
type textSet struct {
	*TextChoice
	*textfile.Index
	classes []string       // names by class number; nil if there are none
	numbers map[string]int // of labels
}

// open makes the index of a file of texts.
func (p *TextChoice) open(path string, fields textfile.Fields, tokens bool) (*textSet, error) {
	x, err := textfile.Open(path, fields, tokens)
	if err != nil {
		return nil, err
	}
	s := &textSet{TextChoice: p, Index: x, numbers: map[string]int{}}
	return s, s.numberLabels()
}

// numberLabels finds the classes, as dataset/folder does: numbers, or names in the order of names or of text.
func (s *textSet) numberLabels() (err error) {
	if s.Names != "" {
		if s.classes, err = readNames(s.Names); err != nil {
			return err
		}
	}
	if !s.HasLabels() {
		return nil
	}
	var entries []entry // one for each label
	for _, l := range s.Labels {
		entries = append(entries, entry{label: l.Label, line: l.Line})
	}
	areNumbers, err := checkLabels(s.File, entries, s.classes)
	if err != nil {
		return err
	}
	if s.classes == nil && !areNumbers {
		s.classes = namesOf(entries)
	}
	of := FolderParams{First: s.First}
	for _, e := range entries {
		if s.numbers[e.label], err = of.classOf(e, s.classes, map[string]int{}); err != nil {
			return fmt.Errorf("%s:%d: %w", s.File, e.line, err)
		}
	}
	return nil
}

// shared returns the digest of what all texts share besides their records: the names of the classes, and what
// tokens and their facts are made by. Files have it, and parameters don't.
func (s *textSet) shared(tokens string) stages.Digest {
	return stages.Sum(fmt.Appendf(nil, "%q %q", s.classes, tokens))
}

// sources lists the chosen texts. A source has no file: its note has the digest of its own record and of what
// all share, so that a changed line changes one item.
func (s *textSet) sources(shared stages.Digest) ([]stages.Source, error) {
	if s.Worse > 0 && (s.Corrupt == "fail" || len(s.Entries) == 0) {
		list := errors.Join(s.Bad...)
		return nil, fmt.Errorf("%s can't be read (corrupt: skip leaves such out): %s",
			s.share(), strings.ReplaceAll(list.Error(), "\n", "; "))
	}
	if s.PerClass > 0 && !s.HasLabels() {
		return nil, stages.BadField("per_class", "per_class: the texts of %s have no labels", s.File)
	}
	all := make([]stages.Source, len(s.Entries))
	notes := map[int]string{}
	for i := range s.Entries {
		e := &s.Entries[i]
		label := -1
		if e.Label != "" {
			label = s.numbers[e.Label]
		}
		if notes[label] == "" {
			notes[label] = noteOf(label)
		}
		all[i] = stages.Source{ID: e.ID, Note: notes[label]}
	}
	chosen, err := s.choice().of(all)
	for i := range chosen {
		chosen[i].Note += noteOfText(s.Entry(chosen[i].ID).Digest, shared)
	}
	return chosen, err
}

// noteOfText is the part of a source's note, after the label, that is the digest of the rest.
func noteOfText(record, shared stages.Digest) string {
	return "; text=" + stages.Sum(append(record[:], shared[:]...)).String()
}

// share returns how many records can't be read.
func (s *textSet) share() string {
	return fmt.Sprintf("%d of %s in %s", s.Worse, english.Count(s.Worse+len(s.Entries), "text"), s.File)
}

// remarks returns how many records are left out. Review folders repeat it, so the file is called by its name.
func (s *textSet) remarks() []string {
	if s.Worse == 0 || s.Corrupt == "fail" {
		return nil
	}
	first := strings.ReplaceAll(s.Bad[0].Error(), s.File, filepath.Base(s.File))
	return []string{fmt.Sprintf("left out, as they can't be read: %s, first %s",
		strings.ReplaceAll(s.share(), s.File, filepath.Base(s.File)), first)}
}

// facts returns the facts of all ports, given those of the tokens.
func (s *textSet) facts(tokens stages.Facts) map[string]stages.Facts {
	labels := stages.Facts{}
	if s.classes != nil {
		labels["classes"], labels["labels"] = strconv.Itoa(len(s.classes)), strings.Join(s.classes, "\n")
	}
	all := map[string]stages.Facts{"tokens": tokens, "words": {"ext": "json"}, "labels": labels, "masks": {}}
	for _, facts := range all {
		facts[stages.ItemsFact] = stages.TextItems
	}
	return all
}

// lacks returns why a port has no items.
func (s *textSet) lacks(port string) error {
	switch {
	case port == "masks" && !s.HasRationales():
		return fmt.Errorf("%s has no rationales: masks are made of a column, or a field of JSON lines, "+
			"called rationale, with pairs of characters as [[0, 5], [9, 12]]", s.File)
	case port == "labels" && !s.HasLabels():
		return fmt.Errorf("%s has no labels: a column, or a field of JSON lines, called label", s.File)
	}
	return nil
}

// put puts an item's tokens and what belongs to them on the ports of call i.
func (s *textSet) put(e *stages.Env, i int, r *textfile.Record, t *textfile.Tokens) error {
	n := len(t.IDs)
	rows := make([]int64, 3*n)
	mask := make([]uint8, n)
	words := stages.Words{Text: r.Text, Tokens: t.Texts, Offsets: t.Offsets, Special: make([]bool, n)}
	inside := before(r.Rationale, utf8.RuneCountInString(r.Text))
	for k, id := range t.IDs {
		rows[k] = int64(id)
		if t.Types != nil {
			rows[n+k] = int64(t.Types[k])
		}
		if words.Special[k] = bool(t.Special[k]); words.Special[k] {
			rows[2*n+k], mask[k] = 1, stages.Ignored
			continue
		}
		if inside[t.Offsets[k][0]] < inside[t.Offsets[k][1]] {
			mask[k] = 1
		}
	}
	payload, err := words.Encode()
	if err != nil {
		return err
	}
	e.Add("tokens", i, "", stages.NewTensor(rows, 3, n).Encode())
	e.Add("words", i, "", payload)
	label, err := noteLabel(e.Source(i))
	if err != nil {
		return err
	}
	if label >= 0 {
		e.Add("labels", i, "", stages.NewTensor([]int64{label}, 1).Encode())
	}
	if r.Rationale != nil {
		e.Add("masks", i, "", stages.NewTensor(mask, 1, n).Encode())
	}
	return nil
}

// before returns how many of the characters before each, and before the end, are in a span.
func before(spans [][2]int, characters int) []int {
	count := make([]int, characters+2)
	for _, s := range spans {
		count[s[0]+1]++
		count[s[1]+1]--
	}
	open := 0 // spans that have begun
	for i := range count {
		open += count[i]
		count[i] = min(open, 1)
		if i > 0 {
			count[i] += count[i-1]
		}
	}
	return count
}

// read calls put for every item of a call, with the record that its source notes.
func (s *textSet) read(ctx context.Context, e *stages.Env, shared stages.Digest,
	put func(i int, r *textfile.Record) error) error {
	file, err := s.Reader()
	if err != nil {
		return err
	}
	defer file.Close()
	for i := range e.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		source := e.Source(i)
		r, d, err := file.Read(source.ID)
		if err == nil && !strings.HasSuffix(source.Note, noteOfText(d, shared)) {
			err = fmt.Errorf("%s has changed while it was read", s.File)
		}
		if err == nil {
			err = put(i, r)
		}
		if err != nil {
			return err
		}
		e.Done(1)
	}
	return nil
}
