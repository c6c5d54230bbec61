package typeset

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names of images and classes, titles and captions are other people's texts. They must not become links,
// pictures or code in Markdown, nor formulas in a CSV file, and must nowhere move the cursor or reverse the
// direction of a line.

var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// hidden reports whether a character is invisible, or changes how its neighbours are displayed. The
// zero-width joiner and non-joiner stay: scripts such as Persian and Devanagari are spelled with them.
func hidden(r rune) bool {
	joiner := r == '\u200c' || r == '\u200d'
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) && !joiner
}

// visible replaces hidden characters and invalid UTF-8 by escapes.
func visible(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1, hidden(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, s[:n][n-1])
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Plain returns a text as one line without hidden characters.
func Plain(s string) string { return visible(oneLine.Replace(s)) }

// Inline escapes a text for a line, or a field of a table, in Markdown: it is displayed as it is.
func Inline(s string) string {
	s = Plain(s)
	var b strings.Builder
	for i := range len(s) {
		c, rest := s[i], s[i+1:]
		switch {
		case c == '<':
			b.WriteString("&lt;")
			continue
		case strings.IndexByte("\\`|@", c) >= 0,
			c == ']' && strings.IndexAny(rest, "([:") == 0, // a link, or the definition of one
			c == ':' && strings.HasPrefix(rest, "//"),      // a bare address, which would become a link
			c == '.' && strings.HasSuffix(strings.ToLower(s[:i]), "www"):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

var altEscapes = strings.NewReplacer("[", "(", "]", ")")

// Alt escapes a text for the alternative text of a picture in Markdown.
func Alt(s string) string { return altEscapes.Replace(Inline(s)) }

// Code returns a text as code in Markdown.
func Code(s string) string {
	return "`" + strings.ReplaceAll(Plain(s), "`", "'") + "`"
}

// Target returns the address of a link to a file.
func Target(name string) string {
	return (&url.URL{Path: name}).EscapedPath()
}

var plainNumber = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

// Field escapes a text for a field of a CSV file: hidden characters become escapes, and a text that a
// spreadsheet would evaluate as a formula begins with an apostrophe. Numbers stay numbers, and different
// texts stay different.
func Field(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, `\`, `\\`), "\n")
	for i, line := range lines {
		lines[i] = visible(line)
	}
	s = strings.Join(lines, "\n")
	r, _ := utf8.DecodeRuneInString(s)
	if strings.ContainsRune("=+-@'＝＋－＠", r) && !plainNumber.MatchString(s) {
		return "'" + s
	}
	return s
}
