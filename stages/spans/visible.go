package spans

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	zwnj = '\u200c'
	zwj  = '\u200d'
)

// extends reports whether a character is drawn on the one before it.
func extends(r rune) bool {
	return unicode.IsMark(r) || r == zwj || r >= 0x1f3fb && r <= 0x1f3ff // tones of skin
}

// Clusters divides a text into characters with their combining marks.
func Clusters(text string) (list []string) {
	before := rune(0)
	for _, r := range text {
		if n := len(list) - 1; n >= 0 && (extends(r) || before == zwj) {
			list[n] += string(r)
		} else {
			list = append(list, string(r))
		}
		before = r
	}
	return list
}

// Visible returns a text in which every character can be seen, and none changes the direction of others: what
// is invisible is written as in Go, such as \u202e, and spaces of any kind are spaces. A joiner between
// letters stays, since it gives them their form.
func Visible(text string) string {
	runes := []rune(strings.ToValidUTF8(text, "\ufffd"))
	var b strings.Builder
	for i, r := range runes {
		inside := i > 0 && i < len(runes)-1
		if i == 0 && unicode.IsMark(r) && seen(r) {
			b.WriteRune('\u25cc') // a circle of dots, which marks without a letter have as their base
		}
		switch {
		case r == '\n', r == '\u2028', r == '\u2029', r == '\u0085':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case (r == zwj || r == zwnj) && inside && seen(runes[i-1]) && seen(runes[i+1]):
			b.WriteRune(r)
		case unicode.Is(unicode.Variation_Selector, r) && i > 0 && seen(runes[i-1]):
			b.WriteRune(r)
		case !seen(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// VisibleLines is [Visible] for text between tokens, whose lines are kept.
func VisibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Visible(strings.ReplaceAll(lines[i], "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// seen reports whether a character has a form.
func seen(r rune) bool {
	return unicode.IsPrint(r) && !unicode.Is(unicode.Variation_Selector, r)
}
