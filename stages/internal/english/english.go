// Package english has the grammar of sentences that stages write: numbers with their nouns, and lists of
// names.
package english

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count returns a number with its noun: "1 image", "2 images".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// CountOf returns a number with its noun, given in the plural: "1 image", "2 images".
func CountOf(n int, nouns string) string { return Count(n, Singular(nouns)) }

// Span writes a number of things that are named in the plural, or the smallest and the largest one.
func Span(low, high int, nouns string) string {
	if low < high {
		return fmt.Sprintf("%d to %s", low, CountOf(high, nouns))
	}
	return CountOf(high, nouns)
}

// Singular returns the singular of a noun that ends in s.
func Singular(nouns string) string { return strings.TrimSuffix(nouns, "s") }

// A returns the singular of a noun with its article: "an image", "a text".
func A(nouns string) string {
	if strings.ContainsRune("aeio", rune(nouns[0])) {
		return "an " + Singular(nouns)
	}
	return "a " + Singular(nouns)
}

// Are returns the verb of n things: "is" of one.
func Are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// And lists names: "a, b and c".
func And(names []string) string { return joined(names, " and ") }

// Or lists alternatives: "a, b or c".
func Or(names []string) string { return joined(names, " or ") }

func joined(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}

// Upper returns a text that begins with a capital letter.
func Upper(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
