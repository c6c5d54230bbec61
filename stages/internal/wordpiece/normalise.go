package wordpiece

import (
	"slices"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// A piece is a part of a text, normalised: its characters, and the characters of the text that each stands
// for.
type piece struct {
	runes []rune
	spans []span
	added *addedToken // nil for text
}

// A span is a range of characters of a text, in code points.
type span struct{ from, to int }

// pieceOf returns a part of a text as it is; at is the position of its first character.
func pieceOf(text string, at int) piece {
	p := piece{runes: []rune(text)}
	p.spans = make([]span, len(p.runes))
	for i := range p.spans {
		p.spans[i] = span{at + i, at + i + 1}
	}
	return p
}

// slice returns the characters of p from start to end.
func (p piece) slice(start, end int) piece {
	return piece{runes: p.runes[start:end], spans: p.spans[start:end]}
}

// whole returns the characters of the text from the first to the last of p.
func (p piece) whole() (from, to int) { return p.spans[0].from, p.spans[len(p.spans)-1].to }

// A normaliser is BERT's.
type normaliser struct {
	clean      bool // drops control characters, and makes all white space a space
	ideographs bool // puts spaces around Chinese characters
	strip      bool // drops accents
	lower      bool
}

// apply returns a piece normalised. Each step sees all that the one before has made: an accent that is lost
// as a control character doesn't separate two others.
func (n *normaliser) apply(p piece) piece {
	if n == nil {
		return p
	}
	if n.clean {
		p = p.mapped(func(r rune, s span, emit func(rune, span)) {
			switch {
			case is(r, remove):
			case is(r, space):
				emit(' ', s)
			default:
				emit(r, s)
			}
		})
	}
	if n.ideographs {
		p = p.mapped(func(r rune, s span, emit func(rune, span)) {
			if !is(r, ideograph) {
				emit(r, s)
				return
			}
			emit(' ', s)
			emit(r, s)
			emit(' ', s)
		})
	}
	if n.strip {
		p = p.decomposed().mapped(func(r rune, s span, emit func(rune, span)) {
			if !is(r, mark) {
				emit(r, s)
			}
		})
	}
	if n.lower {
		p = p.mapped(func(r rune, s span, emit func(rune, span)) {
			if !is(r, capital) {
				emit(r, s)
				return
			}
			for _, small := range lowered(r) {
				emit(small, s)
			}
		})
	}
	return p
}

// mapped returns what f emits for each character.
func (p piece) mapped(f func(r rune, s span, emit func(rune, span))) piece {
	out := piece{runes: make([]rune, 0, len(p.runes)), spans: make([]span, 0, len(p.spans))}
	emit := func(r rune, s span) {
		out.runes, out.spans = append(out.runes, r), append(out.spans, s)
	}
	for i, r := range p.runes {
		f(r, p.spans[i], emit)
	}
	return out
}

// decomposed returns a piece in normal form D. Where marks are put in canonical order, the k-th character
// that isn't a further part of a decomposition stands for the k-th character of p, whichever it comes from:
// so does the library.
func (p piece) decomposed() piece {
	if !slices.ContainsFunc(p.runes, func(r rune) bool { return is(r, composed|combine) }) {
		return p
	}
	type part struct {
		r     rune
		class uint8
		more  bool // a further part of a decomposition
	}
	parts := make([]part, 0, len(p.runes))
	for _, r := range p.runes {
		if !is(r, composed) {
			parts = append(parts, part{r, class(r), false})
			continue
		}
		for i, d := range norm.NFD.String(string(r)) {
			parts = append(parts, part{d, class(d), i > 0})
		}
	}
	for i := 0; i < len(parts); {
		end := i + 1
		for end < len(parts) && parts[end].class != 0 {
			end++
		}
		slices.SortStableFunc(parts[i:end], func(a, b part) int { return int(a.class) - int(b.class) })
		i = end
	}
	out := piece{runes: make([]rune, len(parts)), spans: make([]span, len(parts))}
	at := -1
	for i, d := range parts {
		if !d.more {
			at++
		}
		out.runes[i], out.spans[i] = d.r, p.spans[max(at, 0)]
	}
	return out
}

// class returns the canonical combining class of a character.
func class(r rune) uint8 {
	if !is(r, combine) {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// lowered returns a capital in lower case, whatever letters are around it.
func lowered(r rune) []rune {
	if r == dotted {
		return []rune{'i', '\u0307'}
	}
	return []rune{small()[r]}
}

// dotted is the only capital of two small characters.
const dotted = 'İ'

// small has the small letter of every other capital.
var small = sync.OnceValue(func() map[rune]rune {
	of := map[rune]rune{}
	for i := 0; i < len(capitals); i += 4 {
		first, last, step, by := capitals[i], capitals[i+1], capitals[i+2], capitals[i+3]
		for r := first; r <= last; r += step {
			of[r] = r + by
		}
	}
	return of
})

// A kind is a set of properties of a character.
type kind uint8

const (
	remove kind = 1 << iota
	space
	ideograph
	mark
	punct
	composed
	combine
	capital
)

// is reports whether a character has one of some properties.
func is(r rune, k kind) bool { return kinds()[r]&k != 0 }

// kinds has the properties of every code point.
var kinds = sync.OnceValue(func() []kind {
	all := make([]kind, 0x110000)
	set := func(k kind, ranges []rune) {
		for i := 0; i < len(ranges); i += 2 {
			for r := ranges[i]; r <= ranges[i+1]; r++ {
				all[r] |= k
			}
		}
	}
	set(remove, removed)
	set(space, spaces)
	set(ideograph, ideographs)
	set(mark, nonspacing)
	set(punct, punctuation)
	set(composed, decomposing)
	set(combine, combining)
	all[dotted] |= capital
	for r := range small() {
		all[r] |= capital
	}
	return all
})
