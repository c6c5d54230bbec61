// Package spans divides a text into the parts by which its tokens are shown: one implementation for stages
// and pages alike. spans.go finds the parts, visible.go makes every character visible.
package spans

import (
	"unicode"

	"github.com/runexp/runexp/stages"
)

// A Kind says what of a text a span is.
type Kind int

const (
	Token   Kind = iota // characters of the text that one or more tokens stand for
	Between             // characters of the text that no token stands for, such as spaces
	Spelled             // a token without characters of the text, as the tokeniser spells it
	Special             // a token that the tokeniser added
	Beyond              // the text behind the last token, which was cut off
)

// A Span is a part of a text as people read it. Every token is in exactly one span, and so is every character
// of the text.
type Span struct {
	Kind   Kind
	Text   string
	Tokens []int // in their order
}

// A divider has the spans so far.
type divider struct {
	text  []rune
	spans []Span
	// last is the span of the tokens with the latest characters of the text, −1 for none: it has those from
	// start, and end is the first character in no span.
	last, start, end int
}

// Of returns the spans of a text. Tokens that have a character in common, such as the bytes of an emoji, are
// one span, and so are a character and its combining marks.
func Of(w stages.Words) []Span {
	d := divider{text: []rune(w.Text), last: -1}
	for i, o := range w.Offsets {
		kind := Token
		if w.Special[i] {
			kind = Special
		}
		switch {
		case o[0] == o[1] || o[0] < d.end && o[0] < d.start:
			if kind == Token {
				kind = Spelled
			}
			d.spans = append(d.spans, Span{kind, w.Tokens[i], []int{i}})
		case o[0] >= d.end:
			d.passTo(o[0])
			if kind == Token && d.joins(o[0]) {
				d.extend(o[1], i)
				continue
			}
			d.last, d.start, d.end = len(d.spans), o[0], o[1]
			d.spans = append(d.spans, Span{kind, string(d.text[o[0]:o[1]]), []int{i}})
		default:
			d.extend(max(o[1], d.end), i)
		}
	}
	d.finish()
	return d.spans
}

// passTo adds the characters before a token that no token stands for.
func (d *divider) passTo(to int) {
	d.takeMarks(to)
	if d.end < to {
		d.spans = append(d.spans, Span{Kind: Between, Text: string(d.text[d.end:to])})
		d.end = to
	}
}

// takeMarks adds to the last span the characters before a position that can't be separated from it.
func (d *divider) takeMarks(before int) {
	if d.end >= before || !d.joins(d.end) {
		return
	}
	end := d.end + 1
	for end < before && (extends(d.text[end]) || d.text[end-1] == zwj && !letter(d.text[end])) {
		end++
	}
	d.extend(end)
}

// joins reports whether the character at a position can't be separated from the span before it.
func (d *divider) joins(at int) bool {
	return d.last >= 0 && d.last == len(d.spans)-1 && d.spans[d.last].Kind == Token && at == d.end &&
		at < len(d.text) && (extends(d.text[at]) || d.text[at-1] == zwj && !letter(d.text[at]))
}

// extend adds the characters up to end, and tokens, to the last span of the text.
func (d *divider) extend(end int, tokens ...int) {
	s := &d.spans[d.last]
	s.Text += string(d.text[d.end:end])
	s.Tokens = append(s.Tokens, tokens...)
	d.end = end
}

// finish adds the characters behind the last token. They are in their place, before tokens that aren't in the
// text.
func (d *divider) finish() {
	d.takeMarks(len(d.text))
	rest := Span{Kind: Between, Text: string(d.text[d.end:])}
	if rest.Text == "" {
		return
	}
	for _, r := range rest.Text {
		if letter(r) {
			rest.Kind = Beyond
		}
	}
	at := d.last + 1
	if d.last < 0 {
		at = len(d.spans)
	}
	d.spans = append(d.spans[:at], append([]Span{rest}, d.spans[at:]...)...)
}

// Joined returns spans in which the pieces of a word are one.
func Joined(list []Span) (out []Span) {
	for _, s := range list {
		if n := len(out) - 1; n >= 0 && s.Kind == Token && out[n].Kind == Token && touch(out[n].Text,
			s.Text) {
			out[n].Text += s.Text
			out[n].Tokens = append(append([]int(nil), out[n].Tokens...), s.Tokens...)
			continue
		}
		out = append(out, s)
	}
	return out
}

// touch reports whether a word goes on from one text to the next: scripts without spaces have no such words.
func touch(a, b string) bool {
	before, after := []rune(a), []rune(b)
	if len(before) == 0 || len(after) == 0 {
		return false
	}
	p, q := before[len(before)-1], after[0]
	return letter(p) && letter(q) && !Unspaced(p) && !Unspaced(q)
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// Unspaced reports whether a character is of a script that writes no spaces between words.
func Unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}
