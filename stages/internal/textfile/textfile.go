// Package textfile reads files of texts, CSV (csv.go) or JSON lines (jsonl.go), with labels, rationales and,
// if another program has written them, tokens (tokens.go). Files may be larger than memory: an [Index]
// (index.go) has what is needed of every record, and reads a single one from its place in the file.
package textfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// A Record is a text and what a file says of it.
type Record struct {
	ID        string // "" if the file gives none
	Label     string // a number or a name, "" for none
	Text      string
	Rationale [][2]int // first character of each span and the one after its last; nil for none
	Tokens    *Tokens  // nil unless the file is of tokens
}

// digest is that of all but the record's id and label.
func (r *Record) digest() (stages.Digest, error) {
	b, err := json.Marshal([]any{r.Text, r.Rationale, r.Tokens})
	return stages.Sum(b), err
}

// check returns an error for a text or spans that can't be explained.
func (r *Record) check() error {
	if strings.TrimSpace(r.Text) == "" {
		return errors.New("the text is empty")
	}
	if strings.ContainsFunc(r.ID, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(r.ID) > maxName {
		return fmt.Errorf("the id %.40q has control characters, or more than %d bytes", r.ID, maxName)
	}
	characters := utf8.RuneCountInString(r.Text)
	for _, span := range r.Rationale {
		if span[0] < 0 || span[0] >= span[1] || span[1] > characters {
			return fmt.Errorf("the rationale has the characters from %d to %d, and the text has %d", span[0],
				span[1], characters)
		}
	}
	if r.Tokens != nil {
		return r.Tokens.check(characters)
	}
	return nil
}

// Fields are the names of a record's parts: of columns of CSV, or of fields of JSON.
type Fields struct{ ID, Label, Text, Rationale string }

// Usual are the names of the parts unless a parameter says otherwise.
var Usual = Fields{ID: "id", Label: "label", Text: "text", Rationale: "rationale"}

// spans reads a rationale: a list of pairs in JSON.
func spans(b []byte) ([][2]int, error) {
	var list [][]int
	err := json.Unmarshal(b, &list)
	if err != nil || list != nil && bytes.Contains(b, []byte("null")) { // which Go reads as 0
		return nil, errors.New("the rationale isn't a list of pairs of characters, as [[0, 5], [9, 12]]")
	}
	if list == nil {
		return nil, nil
	}
	out := make([][2]int, len(list))
	for i, pair := range list {
		if len(pair) != 2 {
			return nil,
				fmt.Errorf("the rationale has a span of %d numbers: it needs its first character and "+
					"the one after its last", len(pair))
		}
		out[i] = [2]int(pair)
	}
	return out, nil
}
