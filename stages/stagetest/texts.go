package stagetest

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// fragments are what a text may have that is markup elsewhere, can't be seen, runs from right to left, or
// is a character of several code points.
var fragments = []string{"good", "The", "film", " ", " ", " ", "\n", "\t", ",", "42", "naïve", "e\u0301",
	"\u0301",
	"שלום", "(ב)", "שָׁ", "مرحبا", "بالعالم", "汉字", "。", "हिन्दी", "👩\u200d👧", "👍🏽", "🇩🇪",
	"</text><script>alert(1)</script>",
	"]]>", "<!--", "-->", "&amp;", "\"'`", "\\end{document}", "$x_1^2$", "%#~", "\u202e", "\u2066", "\u2069",
	"\u200f", "\u200b",
	"\u200d", "\u200c", "\ufe0f", "\u00ad", "\u2028", "\x00", "\x1b[31m", "\x7f", "\u0085", "\ufeff",
	"\uffff", "\ue000",
	"\U000e0041", "\u3000", "\u00a0", strings.Repeat("W", 300), "\ufffd"}

// HostileWords returns a text of random fragments with random tokens: some have characters in common or none,
// some characters have no token, and tokens end anywhere.
func HostileWords(r *rand.Rand) stages.Words {
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(fragments[r.IntN(len(fragments))])
	}
	w := stages.Words{Text: b.String()}
	add := func(token string, from, to int, special bool) {
		w.Tokens, w.Special = append(w.Tokens, token), append(w.Special, special)
		w.Offsets = append(w.Offsets, [2]int{from, to})
	}
	text := []rune(w.Text)
	add("[CLS]", 0, 0, true)
	for at, n := 0, utf8.RuneCountInString(w.Text); at < n; {
		end := min(at+r.IntN(6), n)
		switch r.IntN(12) {
		case 0: // left out
		case 1:
			add("<0xF0>", at, end, false)
			add("<0x9F>", at, end, false)
		case 2:
			add(fragments[r.IntN(len(fragments))], at, at, false)
		case 3:
			add("back", max(at-r.IntN(5), 0), end, false)
		default:
			add(string(text[at:end]), at, end, false)
		}
		at = max(end, at+r.IntN(2))
	}
	add("</s>", 0, 0, true)
	return w
}
