package publish

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names of images and classes, titles and captions are other people's texts. In a README.md they mustn't
// become links, pictures or code, in a CSV file no formulas, and nowhere may they move the cursor or turn the
// line around.

var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// hidden reports whether a character shows nothing, or changes how others show. The joiners are letters'
// business.
func hidden(r rune) bool {
	joiner := r == '\u200c' || r == '\u200d'
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) && !joiner
}

// visible writes hidden characters and what isn't UTF-8 as escapes.
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

// plain makes a text one line without hidden characters.
func plain(s string) string { return visible(oneLine.Replace(s)) }

// inline makes a text one of a line or a table's field in Markdown, which shows it as it is.
func inline(s string) string {
	s = plain(s)
	var b strings.Builder
	for i := range len(s) {
		c, rest := s[i], s[i+1:]
		switch {
		case c == '<':
			b.WriteString("&lt;")
			continue
		case strings.IndexByte("\\`|@", c) >= 0,
			c == ']' && strings.IndexAny(rest, "([:") == 0, // a link, or where one leads
			c == ':' && strings.HasPrefix(rest, "//"),      // a bare address becomes a link, too
			c == '.' && strings.HasSuffix(strings.ToLower(s[:i]), "www"):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

var altEscapes = strings.NewReplacer("[", "(", "]", ")")

// alt makes a text fit for a picture's alternative.
func alt(s string) string { return altEscapes.Replace(inline(s)) }

// code shows a text as code.
func code(s string) string {
	return "`" + strings.ReplaceAll(plain(s), "`", "'") + "`"
}

// target makes the name of a file what a link leads to.
func target(name string) string {
	return (&url.URL{Path: name}).EscapedPath()
}

var plainNumber = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

// Field makes a text a field of a CSV file: hidden characters are escapes, and what a spreadsheet would take
// for a formula begins with an apostrophe. A number stays one. Different texts stay different.
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
