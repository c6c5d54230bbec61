package publish

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// folderFile has what README.md shows and no other file has, as data: README.md is for people alone.
const folderFile = "folder.jsonl"

// folderRenderer writes folder.jsonl: the command, a line each note, the heads of tables, the texts of
// stages.
var folderRenderer = renderer{
	name:  "folder",
	files: []pattern{{folderFile, unionAttributes}},
	render: func(f *Folder, add func(name string, b []byte)) {
		if lines := f.encode(); len(lines) > 0 {
			add(folderFile, lines)
		}
	},
	read: func(d *disk, _ string, b []byte) bool {
		d.about = readAbout(b)
		return false // a stranger's file may be called so
	},
}

// A folderLine is a line of folder.jsonl, with its keys sorted. It has one of a command, a note, a table and,
// by cell and port, a text.
type folderLine struct {
	Cell       string                      `json:"cell,omitempty"`
	Command    string                      `json:"command,omitempty"`
	Directions map[string]stages.Direction `json:"directions,omitempty"` // of the table's columns
	Marks      string                      `json:"marks,omitempty"`      // what the table's asterisks mean
	Note       string                      `json:"note,omitempty"`       // a paragraph of Markdown
	Old        bool                        `json:"old,omitempty"`        // the text is of an earlier run
	Port       string                      `json:"port,omitempty"`
	Table      string                      `json:"table,omitempty"` // its file
	Text       string                      `json:"text,omitempty"`
	Title      string                      `json:"title,omitempty"`
}

// encode returns the lines of folder.jsonl. Texts are in the order of README.md, so that the answer comes
// first.
func (f *Folder) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	add := func(l folderLine) {
		if err := e.Encode(l); err != nil {
			panic(err) // there's nothing in a line that JSON can't hold
		}
	}
	if f.Command != "" {
		add(folderLine{Command: f.Command})
	}
	for _, note := range f.notes() {
		add(folderLine{Note: note})
	}
	byFile := func(a, b *Sheet) int { return cmp.Compare(a.File, b.File) }
	for _, s := range slices.SortedFunc(slices.Values(f.Sheets), byFile) {
		l := folderLine{Table: s.File, Title: s.title(), Directions: map[string]stages.Direction{}}
		for _, n := range s.Numbers {
			if typeset.Arrows[n.Direction] != "" {
				l.Directions[n.Name] = n.Direction
			}
			if n.Marks != "" {
				l.Marks = n.Unit
			}
		}
		add(l)
	}
	for _, p := range f.Answers() {
		add(folderLine{Cell: p.Cell, Port: p.Port, Text: p.Body, Old: p.Old})
	}
	return b.Bytes()
}

// about is the content of folder.jsonl. Of the lines of two branches, the first command and the first head
// of a table count. Texts are entries, which are merged like those of other files.
type about struct {
	command  string
	notes    []string
	heads    map[string]folderLine // by the table's file
	passages []*Passage
}

// readAbout reads lines that encode wrote and skips everything else. It returns nil without such a line.
func readAbout(b []byte) *about {
	a := &about{heads: map[string]folderLine{}}
	for text := range strings.Lines(string(b)) {
		var l folderLine
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		_, known := a.heads[l.Table]
		switch {
		case l.Cell != "":
			p := &Passage{common: common{l.Old}, Cell: l.Cell, Port: l.Port, Body: l.Text}
			a.passages = append(a.passages, p)
		case l.Table != "" && !known:
			a.heads[l.Table] = l
		case l.Note != "" && len(a.notes) < mostNotes && !slices.Contains(a.notes, l.Note):
			a.notes = append(a.notes, l.Note)
		case a.command == "":
			a.command = l.Command
		}
	}
	if a.command == "" && len(a.notes)+len(a.heads)+len(a.passages) == 0 {
		return nil
	}
	return a
}
