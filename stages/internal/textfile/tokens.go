package textfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Tokens are those of a text, by the model's own tokeniser.
type Tokens struct {
	IDs     []int
	Types   []int // nil: all are 0
	Special []Flag
	Texts   []string
	Offsets [][2]int

	// Padding is how many tokens were left out, as the attention mask hides them.
	Padding int
}

// A Header is the first line of a file of tokens: ids of the tokens that fill up and that hide, and the
// number of ids, nil where the file doesn't say.
type Header struct{ Pad, Mask, Vocabulary *int }

// maxID limits ids and types.
const maxID = 1<<31 - 1

// A Flag is true or false, or 1 or 0.
type Flag bool

// UnmarshalJSON reads either.
func (f *Flag) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "1", "true":
		*f = true
	case "0", "false":
		*f = false
	default:
		return fmt.Errorf("%.20s isn't 0 or 1", b)
	}
	return nil
}

// header reads a first line, if it is a header.
func header(fields map[string]json.RawMessage) (h *Header, err error) {
	if fields["ids"] != nil || fields["text"] != nil ||
		fields["pad"] == nil && fields["mask"] == nil && fields["vocabulary"] == nil {
		return nil, nil
	}
	h = &Header{}
	for name, to := range map[string]**int{"pad": &h.Pad, "mask": &h.Mask, "vocabulary": &h.Vocabulary} {
		if b := fields[name]; b != nil {
			if err := json.Unmarshal(b, to); err != nil {
				return nil, fmt.Errorf("%s is %.40s, not a whole number", name, b)
			}
		}
	}
	most := maxID + 1
	if h.Vocabulary != nil {
		if most = *h.Vocabulary; most < 1 || most > maxID+1 {
			return nil, fmt.Errorf("vocabulary is %d, not between 1 and %d", most, maxID+1)
		}
	}
	for name, id := range map[string]*int{"pad": h.Pad, "mask": h.Mask} {
		if id != nil && (*id < 0 || *id >= most) {
			return nil, fmt.Errorf("%s is %d, not between 0 and %d", name, *id, most-1)
		}
	}
	return h, nil
}

// readTokens reads the tokens of a record, without those that its mask hides.
func readTokens(fields map[string]json.RawMessage, h *Header) (*Tokens, error) {
	t, shown, err := readLists(fields)
	if err != nil {
		return nil, err
	}
	n := len(t.IDs)
	if n == 0 {
		return nil, errors.New("ids is empty: a text has tokens")
	}
	for name, have := range map[string]int{"tokens": len(t.Texts), "offsets": len(t.Offsets),
		"special": len(t.Special), "types": len(t.Types), "mask": len(shown)} {
		if have != n && (have > 0 || fields[name] != nil && string(fields[name]) != "null") {
			return nil, fmt.Errorf("there are %d ids and %d %s", n, have, name)
		}
	}
	if h != nil && h.Vocabulary != nil {
		if i := slices.IndexFunc(t.IDs, func(id int) bool { return id >= *h.Vocabulary }); i >= 0 {
			return nil, fmt.Errorf("the token %d has the id %d, and by line 1 there are %d", i, t.IDs[i],
				*h.Vocabulary)
		}
	}
	t.dropHidden(shown)
	return t, nil
}

// readLists reads the lists of a record; shown is its mask.
func readLists(fields map[string]json.RawMessage) (t *Tokens, shown []Flag, err error) {
	t = &Tokens{}
	var texts []*string
	var offsets [][]int
	for _, list := range []struct {
		name     string
		to       any
		is       string
		optional bool
	}{
		{"ids", &t.IDs, "whole numbers", false},
		{"tokens", &texts, "texts", false},
		{"offsets", &offsets, "pairs of characters", false},
		{"special", &t.Special, "0 and 1", false},
		{"types", &t.Types, "whole numbers", true},
		{"mask", &shown, "0 and 1", true},
	} {
		b := fields[list.name]
		if b == nil || string(b) == "null" {
			if list.optional {
				continue
			}
			return nil, nil,
				fmt.Errorf("there are no %s: a line needs text, ids, tokens, offsets and special",
					list.name)
		}
		// Go reads null as 0.
		err := json.Unmarshal(b, list.to)
		if err != nil || list.name != "tokens" && bytes.Contains(b, []byte("null")) || slices.Contains(texts,
			nil) {
			return nil, nil, fmt.Errorf("%s isn't a list of %s: %.40s", list.name, list.is, b)
		}
	}
	for _, text := range texts {
		t.Texts = append(t.Texts, *text)
	}
	for i, pair := range offsets {
		if len(pair) != 2 {
			return nil, nil,
				fmt.Errorf("the token %d has %d offsets: it needs its first character and the one "+
					"after its last", i, len(pair))
		}
		t.Offsets = append(t.Offsets, [2]int(pair))
	}
	return t, shown, nil
}

// dropHidden leaves out the tokens that an attention mask hides.
func (t *Tokens) dropHidden(shown []Flag) {
	kept := 0
	for i, s := range shown {
		if !s {
			t.Padding++
			continue
		}
		t.IDs[kept], t.Texts[kept] = t.IDs[i], t.Texts[i]
		t.Offsets[kept], t.Special[kept] = t.Offsets[i], t.Special[i]
		if t.Types != nil {
			t.Types[kept] = t.Types[i]
		}
		kept++
	}
	if t.Padding == 0 {
		return
	}
	t.IDs, t.Texts, t.Offsets, t.Special = t.IDs[:kept], t.Texts[:kept], t.Offsets[:kept], t.Special[:kept]
	if t.Types != nil {
		t.Types = t.Types[:kept]
	}
}

// check checks the numbers of tokens of a text of so many characters.
func (t *Tokens) check(characters int) error {
	for i, id := range t.IDs {
		switch o := t.Offsets[i]; {
		case id < 0 || id > maxID:
			return fmt.Errorf("the token %d has the id %d, not between 0 and %d", i, id, maxID)
		case t.Types != nil && (t.Types[i] < 0 || t.Types[i] > maxID):
			return fmt.Errorf("the token %d has the type %d, not between 0 and %d", i, t.Types[i], maxID)
		case o[0] < 0 || o[0] > o[1] || o[1] > characters:
			return fmt.Errorf("the token %d has the characters from %d to %d, and the text has %d", i, o[0],
				o[1], characters)
		}
	}
	if !slices.Contains(t.Special, false) {
		return errors.New("there are special tokens alone, none of the text")
	}
	return nil
}
