package stages

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Words is a text as people read it: the payload of a port of type [WordsType].
type Words struct {
	Text   string   `json:"text"`
	Tokens []string `json:"tokens"` // as the tokeniser spells them, such as ##ing
	// Offsets has the first character of each token in the text and the one after its last, counted in
	// Unicode code points; equal for a token that isn't in the text.
	Offsets [][2]int `json:"offsets"`
	// Special marks the tokens that the tokeniser added.
	Special []bool `json:"special"`
}

// Encode returns the payload of w.
func (w Words) Encode() ([]byte, error) { return json.Marshal(w) }

// DecodeWords reads a payload written by Encode.
func DecodeWords(b []byte) (w Words, err error) {
	if err := json.Unmarshal(b, &w); err != nil {
		return w, fmt.Errorf("words that are damaged: %w", err)
	}
	characters := utf8.RuneCountInString(w.Text)
	if len(w.Offsets) != len(w.Tokens) || len(w.Special) != len(w.Tokens) {
		return w, fmt.Errorf("words with %d tokens, %d offsets and %d marks", len(w.Tokens), len(w.Offsets),
			len(w.Special))
	}
	for i, o := range w.Offsets {
		if o[0] < 0 || o[0] > o[1] || o[1] > characters {
			return w, fmt.Errorf("words whose token %d has characters %d to %d of %d", i, o[0], o[1],
				characters)
		}
	}
	return w, nil
}
