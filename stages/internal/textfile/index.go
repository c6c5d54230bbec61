package textfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/recent"
)

// maxRecord limits the bytes of a record, maxName those of an id.
const (
	maxRecord = 1 << 28
	maxName   = 200
)

var errNotUTF8 = errors.New("not UTF-8 text: save the file as UTF-8")

// A place is where a record is in a file.
type place struct {
	offset int64
	length int
	line   int // of its beginning, from 1
}

// An Entry is what an index has of a record.
type Entry struct {
	ID        string // the record's, or the number of its line
	Label     string // "" for none
	Digest    stages.Digest
	Rationale bool // it has one
	place
}

// Line returns the number of the record's first line.
func (e *Entry) Line() int { return e.line }

// An Index is what is needed of every record of a file.
type Index struct {
	File    string
	Entries []Entry
	Header  Header
	// Labels are the different labels, in the order of the file, each with its first line.
	Labels []Labelled
	// Bad are the records that can't be read, with their places, the first of mostBad; Worse is the number of
	// all.
	Bad   []error
	Worse int

	fields   Fields
	tokens   bool // the file is one of tokens
	columns  []string
	comma    rune
	byID     map[string]int
	labels   map[string]string
	rational bool
}

// A Labelled is a label, and the line of its first record.
type Labelled struct {
	Label string
	Line  int
}

// mostBad is how many records that can't be read are kept.
const mostBad = 10

// Entry returns the entry with an id, nil if there is none.
func (x *Index) Entry(id string) *Entry {
	i, ok := x.byID[id]
	if !ok {
		return nil
	}
	return &x.Entries[i]
}

// HasRationales and HasLabels report whether a record has one.
func (x *Index) HasRationales() bool { return x.rational }
func (x *Index) HasLabels() bool     { return len(x.Labels) > 0 }

// indexes are the last that this process has made.
var indexes recent.Cache[*Index]

// Open returns the index of a file of texts, or of tokens. It reads the file once for as long as it doesn't
// change.
func Open(file string, fields Fields, tokens bool) (*Index, error) {
	x, err := indexes.Get(fmt.Sprintf("%q %t", fields, tokens), []string{file}, func() (*Index, error) {
		return read(file, fields, tokens)
	})
	if p := new(fs.PathError); errors.As(err, &p) {
		err = fmt.Errorf("%q: %w", file, p.Err)
	}
	if err != nil {
		return nil, err
	}
	same := *x
	same.File = file // as this caller calls it
	return &same, nil
}

// read makes the index of a file.
func read(file string, fields Fields, tokens bool) (*Index, error) {
	f, err := stages.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 1<<16)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	x := &Index{File: file, fields: fields, tokens: tokens, byID: map[string]int{},
		labels: map[string]string{}}
	begin := int64(len(head) - len(bytes.TrimPrefix(head, []byte("\ufeff"))))
	head = head[begin:]
	text := bytes.TrimSpace(head)
	if len(text) == 0 {
		return nil, fmt.Errorf("%q is empty", file)
	}
	if text[0] != '{' && text[0] != '[' {
		if is := stages.Mistaken(head); is != nil {
			return nil, fmt.Errorf("%q is %w", file, is)
		}
	}
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return nil, err
	}
	switch lines := text[0] == '{' || text[0] == '['; {
	case tokens && !lines:
		return nil, fmt.Errorf("%q isn't JSON lines of tokens: dataset/text reads CSV", file)
	case lines:
		err = x.readLines(newLines(f, begin))
	default:
		err = x.readTable(f, begin, string(head))
	}
	if err != nil {
		return nil, err
	}
	return x, x.finish()
}

func (x *Index) readLines(l *lines) error {
	for {
		line, at, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return x.placed(at, err)
		}
		fields, err := fieldsOf(line)
		if first := len(x.Entries)+x.Worse == 0; first && x.Header == (Header{}) && err == nil {
			is, err := x.readHeader(fields)
			if err != nil {
				return x.placed(at, err)
			}
			if is {
				continue
			}
		}
		var r *Record
		if err == nil {
			r, err = x.ofLine(fields)
		}
		if err := x.add(r, at, err); err != nil {
			return err
		}
	}
}

// readHeader reads the first line of a file of tokens, if it is a header.
func (x *Index) readHeader(fields map[string]json.RawMessage) (is bool, err error) {
	h, err := header(fields)
	if h == nil || err != nil {
		return false, err
	}
	if !x.tokens {
		return false, errors.New("a file of tokens: dataset/tokens reads it")
	}
	x.Header = *h
	return true, nil
}

// ofLine returns the record in the fields of a line.
func (x *Index) ofLine(fields map[string]json.RawMessage) (r *Record, err error) {
	if r, err = ofFields(fields, x.fields); err == nil && x.tokens {
		r.Tokens, err = readTokens(fields, &x.Header)
	}
	return r, err
}

func (x *Index) readTable(r io.Reader, offset int64, head string) error {
	t, err := newTable(r, offset, head)
	if err != nil {
		return x.placed(place{line: 1}, err)
	}
	x.columns, x.comma = t.columns, t.comma
	for i, name := range x.columns {
		if name != "" && slices.Contains(x.columns[:i], name) {
			return x.placed(place{line: 1}, fmt.Errorf("two columns are called %q", name))
		}
	}
	for _, c := range []struct{ parameter, name, usual string }{
		{"text", x.fields.Text, ""}, {"label", x.fields.Label, Usual.Label},
		{"rationale", x.fields.Rationale, Usual.Rationale}, {"id", x.fields.ID, Usual.ID},
	} {
		if c.name != c.usual && !slices.Contains(x.columns, c.name) {
			return stages.BadName(c.parameter, c.name, x.columns, "%s:1: no column %q, only %s", x.File,
				c.name, strings.Join(x.columns, ", "))
		}
	}
	for {
		fields, at, err := t.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return x.placed(at, err) // what follows may be amid a field
		}
		r, err := ofColumns(fields, x.columns, x.fields)
		if err := x.add(r, at, err); err != nil {
			return err
		}
	}
}

func (x *Index) placed(at place, err error) error {
	return fmt.Errorf("%s:%d: %w", x.File, at.line, err)
}

// maxEntries limits the records of a file.
const maxEntries = 1 << 27

// add adds a record, or counts it among those that can't be read.
func (x *Index) add(r *Record, at place, err error) error {
	if err == nil {
		err = r.check()
	}
	e := Entry{place: at}
	if err == nil {
		e.ID, e.Rationale = strings.Clone(r.ID), r.Rationale != nil
		if e.ID == "" {
			e.ID = fmt.Sprintf("%06d", at.line)
		}
		if first, twice := x.byID[e.ID]; twice {
			err = fmt.Errorf("a second record with the id %q, first on line %d", e.ID, x.Entries[first].line)
		}
	}
	if err != nil {
		if x.Worse++; x.Worse <= mostBad {
			x.Bad = append(x.Bad, x.placed(at, err))
		}
		return nil
	}
	if e.Digest, err = r.digest(); err != nil {
		return x.placed(at, err)
	}
	if len(x.Entries) == maxEntries {
		return fmt.Errorf("%s has more than %d records", x.File, maxEntries)
	}
	e.Label = x.intern(r.Label, at.line)
	x.byID[e.ID] = len(x.Entries)
	x.Entries = append(x.Entries, e)
	return nil
}

// intern returns one string for equal labels.
func (x *Index) intern(label string, line int) string {
	if label == "" {
		return ""
	}
	known, ok := x.labels[label]
	if !ok {
		known = strings.Clone(label)
		x.labels[known] = known
		x.Labels = append(x.Labels, Labelled{known, line})
	}
	return known
}

// finish checks what concerns all records: either all have labels, or none has.
func (x *Index) finish() error {
	if len(x.Entries)+x.Worse == 0 {
		return fmt.Errorf("%q has no texts", x.File)
	}
	with := slices.IndexFunc(x.Entries, func(e Entry) bool { return e.Label != "" })
	without := slices.IndexFunc(x.Entries, func(e Entry) bool { return e.Label == "" })
	if with >= 0 && without >= 0 {
		return fmt.Errorf("%s:%d: no label, and line %d has one", x.File, x.Entries[without].line,
			x.Entries[with].line)
	}
	x.labels = nil
	if !x.HasLabels() && x.fields.Label != Usual.Label {
		return stages.BadField("label", "%s: no record has %q", x.File, x.fields.Label)
	}
	x.rational = slices.ContainsFunc(x.Entries, func(e Entry) bool { return e.Rationale })
	return nil
}

// A Reader reads single records of a file. It may be used concurrently.
type Reader struct {
	x *Index
	f *os.File
}

// Reader opens the file.
func (x *Index) Reader() (*Reader, error) {
	f, err := stages.OpenFile(x.File)
	if err != nil {
		return nil, err
	}
	return &Reader{x, f}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }

// Read returns the record with an id, and its digest. It returns an error if the file has changed since it
// was indexed.
func (r *Reader) Read(id string) (record *Record, d stages.Digest, err error) {
	e := r.x.Entry(id)
	if e == nil {
		return nil, d, fmt.Errorf("%s has no text %q any more", r.x.File, id)
	}
	part := make([]byte, e.length)
	if _, err := r.f.ReadAt(part, e.offset); err != nil && !(errors.Is(err, io.EOF)) {
		return nil, d, err
	}
	record, err = r.parse(part)
	if err == nil {
		err = record.check()
	}
	if err == nil {
		d, err = record.digest()
	}
	if err != nil || d != e.Digest {
		return nil, d, fmt.Errorf("%s:%d has changed while it was read", r.x.File, e.line)
	}
	return record, d, nil
}

func (r *Reader) parse(part []byte) (*Record, error) {
	if r.x.columns != nil {
		fields, err := only(part, r.x.comma)
		if err != nil {
			return nil, err
		}
		return ofColumns(fields, r.x.columns, r.x.fields)
	}
	fields, err := fieldsOf(part)
	if err != nil {
		return nil, err
	}
	return r.x.ofLine(fields)
}
