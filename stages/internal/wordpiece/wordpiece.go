// Package wordpiece tokenises texts as Hugging Face's tokenizers 0.23 does for BERT and its kin, to the id
// and to the character. A [Tokenizer] is read from tokenizer.json (load.go) or vocab.txt (vocabulary.go).
// Encode finds the tokens that were added to the vocabulary (added.go), normalises what is between them
// (normalise.go, by the tables of that library's crates, tables.go), splits it into words, and these into the
// longest pieces of the vocabulary (wordpiece.go).
package wordpiece

import (
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// A Token is a token of a text.
type Token struct {
	ID   int
	Text string // as the vocabulary spells it
	// From and To are its first character in the text and the one after its last, in Unicode code points;
	// both are 0 for a special token.
	From, To int
	Type     int
	Special  bool // it comes from the template, not from the text
}

// A Tokenizer turns texts into tokens. It may be used concurrently.
type Tokenizer struct {
	Pad, Mask  int           // ids of the tokens that fill up and that hide, -1 for none
	Vocabulary int           // one more than the largest id
	Digest     stages.Digest // of all that determines the tokens of a text

	normaliser *normaliser // nil for none
	added      addedTokens
	pieces     map[string]int // by the text of a piece at the beginning of a word
	inner      map[string]int // by the text of a piece inside a word, without its prefix
	prefix     string         // of pieces inside words
	longest    int            // of pieces, in bytes
	mostChars  int            // of a word; a longer one is unknown
	unknown    Token

	before, after []Token // special tokens of the template
	kind          int     // type of the text's tokens
	trim          bool    // the offsets of tokens leave out spaces
	spaced        bool    // but not a single space at the beginning
}

// Least is the least number of tokens of a text: the special ones, and one of its own.
func (t *Tokenizer) Least() int { return len(t.before) + len(t.after) + 1 }

// Unknown returns how many of the tokens stand for words that the vocabulary lacks, and how many aren't
// special.
func (t *Tokenizer) Unknown(tokens []Token) (unknown, all int) {
	for _, k := range tokens {
		if k.Special {
			continue
		}
		if all++; k.ID == t.unknown.ID {
			unknown++
		}
	}
	return unknown, all
}

// Encode returns the tokens of a text: at most so many, or all if most is 0. cut is the number of tokens at
// its end that were left out.
func (t *Tokenizer) Encode(text string, most int) (tokens []Token, cut int) {
	tokens = append(tokens, t.before...)
	for _, p := range t.added.split(text, t.normaliser) {
		if p.added != nil {
			from, to := p.whole()
			tokens = append(tokens, Token{ID: p.added.id, Text: string(p.runes), From: from, To: to,
				Type: t.kind})
			continue
		}
		tokens = t.words(tokens, p)
	}
	if all := len(tokens) + len(t.after); most > 0 && all > most {
		cut = all - max(most, t.Least()-1)
		tokens = tokens[:len(tokens)-cut]
	}
	for i := range tokens[len(t.before):] {
		if t.trim {
			t.trimSpaces(&tokens[len(t.before)+i], i == 0)
		}
	}
	return append(tokens, t.after...), cut
}

// words appends the tokens of the words of a piece of text.
func (t *Tokenizer) words(tokens []Token, p piece) []Token {
	start := 0
	flush := func(end int) {
		if start < end {
			tokens = t.word(tokens, p, start, end)
		}
	}
	for i, r := range p.runes {
		switch {
		case is(r, space):
			flush(i)
			start = i + 1
		case is(r, punct):
			flush(i)
			tokens = t.word(tokens, p, i, i+1)
			start = i + 1
		}
	}
	flush(len(p.runes))
	return tokens
}

// word appends the tokens of a word, the characters from start to end of a piece of text.
func (t *Tokenizer) word(tokens []Token, p piece, start, end int) []Token {
	known := len(tokens)
	if end-start <= t.mostChars {
		word := string(p.runes[start:end])
		for at := start; at < end; {
			id, bytes, chars := t.longestPiece(word, at > start)
			if chars == 0 {
				tokens = tokens[:known]
				break
			}
			text := word[:bytes]
			if at > start {
				text = t.prefix + text
			}
			tokens = append(tokens, Token{ID: id, Text: text, From: p.spans[at].from,
				To: p.spans[at+chars-1].to, Type: t.kind})
			word, at = word[bytes:], at+chars
		}
	}
	if len(tokens) == known {
		unknown := t.unknown
		unknown.From, unknown.To, unknown.Type = p.spans[start].from, p.spans[end-1].to, t.kind
		tokens = append(tokens, unknown)
	}
	return tokens
}

// longestPiece returns the longest piece of the vocabulary with which the rest of a word begins, and its
// length; inside, pieces are those that have the prefix. chars is 0 if there is none.
func (t *Tokenizer) longestPiece(rest string, inside bool) (id, bytes, chars int) {
	pieces := t.pieces
	if inside {
		pieces = t.inner
	}
	bytes = min(len(rest), t.longest)
	for bytes > 0 {
		if bytes == len(rest) || utf8.RuneStart(rest[bytes]) {
			if id, ok := pieces[rest[:bytes]]; ok {
				return id, bytes, utf8.RuneCountInString(rest[:bytes])
			}
		}
		bytes--
	}
	return 0, 0, 0
}

// spaceMark stands for a space in vocabularies of bytes.
const spaceMark = 'Ġ'

// trimSpaces narrows a token's characters to those that aren't spaces at its ends.
func (t *Tokenizer) trimSpaces(k *Token, first bool) {
	isSpace := func(r rune) bool { return r == spaceMark || is(r, space) }
	leading := utf8.RuneCountInString(k.Text) - utf8.RuneCountInString(strings.TrimLeftFunc(k.Text, isSpace))
	trailing := utf8.RuneCountInString(k.Text) - utf8.RuneCountInString(strings.TrimRightFunc(k.Text,
		isSpace))
	if t.spaced && leading == 1 && (first || k.From == 0) {
		leading = 0
	}
	k.From = min(k.From+leading, k.To)
	if k.To >= trailing {
		k.To = max(k.To-trailing, k.From)
	}
}
