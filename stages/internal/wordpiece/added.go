package wordpiece

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// An addedToken is a token that is found in texts before they are split into words.
type addedToken struct {
	id          int
	content     string // normalised, if it is looked for in normalised text
	left, right bool   // the spaces on this side belong to it
}

// addedTokens are the tokens that are looked for in the text as it is, and those in the normalised text.
type addedTokens struct{ raw, normalised matcher }

// split returns the pieces of a text: tokens, and normalised text between them.
func (a *addedTokens) split(text string, n *normaliser) (pieces []piece) {
	for _, p := range a.raw.split(pieceOf(text, 0)) {
		if p.added != nil {
			pieces = append(pieces, p)
			continue
		}
		pieces = append(pieces, a.normalised.split(n.apply(p))...)
	}
	return pieces
}

// A matcher finds tokens in a text, by their first character, the longest first.
type matcher map[rune][]matched

type matched struct {
	runes []rune
	token *addedToken
}

// add adds a token. It returns an error if it is empty, or there already.
func (m matcher) add(t *addedToken) error {
	runes := []rune(t.content)
	if len(runes) == 0 {
		return fmt.Errorf("the added token with the id %d is empty once it is normalised", t.id)
	}
	list := m[runes[0]]
	if i := slices.IndexFunc(list, func(k matched) bool { return slices.Equal(k.runes, runes) }); i >= 0 {
		return fmt.Errorf("the added tokens with the ids %d and %d are both %q", list[i].token.id, t.id,
			t.content)
	}
	list = append(list, matched{runes, t})
	slices.SortStableFunc(list, func(a, b matched) int { return len(b.runes) - len(a.runes) })
	m[runes[0]] = list
	return nil
}

// at returns the longest token that begins with the first of some characters.
func (m matcher) at(runes []rune) (k matched, ok bool) {
	for _, k := range m[runes[0]] {
		if len(k.runes) <= len(runes) && slices.Equal(k.runes, runes[:len(k.runes)]) {
			return k, true
		}
	}
	return k, false
}

// split returns the tokens in a piece and what is between them, without empty pieces.
func (m matcher) split(p piece) (pieces []piece) {
	if len(m) == 0 {
		return nonEmpty(p)
	}
	done := 0
	for i := 0; i < len(p.runes); {
		k, ok := m.at(p.runes[i:])
		if !ok {
			i++
			continue
		}
		start, end := i, i+len(k.runes)
		i = end
		if k.token.left {
			for start > done && is(p.runes[start-1], space) {
				start--
			}
			start = max(start, done)
		}
		if k.token.right {
			for end < len(p.runes) && is(p.runes[end], space) {
				end++
			}
		}
		pieces = append(pieces, nonEmpty(p.slice(done, max(start, done)))...)
		token := p.slice(start, end)
		token.added = k.token
		pieces, done = append(pieces, token), end
	}
	return append(pieces, nonEmpty(p.slice(min(done, len(p.runes)), len(p.runes)))...)
}

func nonEmpty(p piece) []piece {
	if len(p.runes) == 0 {
		return nil
	}
	return []piece{p}
}

// textOf returns the characters of a normalised token.
func (n *normaliser) textOf(content string) string {
	if !utf8.ValidString(content) {
		return content
	}
	return string(n.apply(pieceOf(content, 0)).runes)
}
