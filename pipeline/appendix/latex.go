package appendix

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// A namer gives files names that every engine can include: ASCII letters, digits and hyphens.
type namer map[string]bool

var unsafe = regexp.MustCompile(`[^A-Za-z0-9]+`)

func (n namer) name(dir, base, ext string) string {
	base = strings.Trim(unsafe.ReplaceAllString(base, "-"), "-")
	if base == "" {
		base = "x"
	}
	name := dir + base + ext
	for i := 2; n[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s%s-%d%s", dir, base, i, ext)
	}
	n[strings.ToLower(name)] = true // file systems may not tell letters' case apart
	return name
}

// captionOf makes a caption in LaTeX of what the comments at the beginning of a table say, behind the line on
// what made it.
func captionOf(table []byte) string {
	var parts []string
	for i, line := range strings.Split(string(table), "\n") {
		text, comment := strings.CutPrefix(line, "% ")
		if !comment {
			break
		}
		if i > 0 {
			text = strings.TrimRight(text, " ")
			if !strings.HasSuffix(text, ".") {
				text += "."
			}
			parts = append(parts, typeset.LaTeXText(text))
		}
	}
	return strings.Join(parts, " ")
}

var (
	bold  = regexp.MustCompile(`\*\*(.+?)\*\*`)
	links = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	marks = regexp.MustCompile("\\\\([\\\\`|@*_#\\[\\]<>~!-])")
)

var entities = strings.NewReplacer("`", "", "&lt;", "<", "&gt;", ">", "&amp;", "&")

// answer makes LaTeX of an answer in Markdown: paragraphs and words in bold; of links, their text.
func answer(s string) string {
	s = entities.Replace(links.ReplaceAllString(s, "$1"))
	var out []string
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		var b strings.Builder
		last := 0
		for _, at := range bold.FindAllStringSubmatchIndex(paragraph, -1) {
			b.WriteString(typeset.LaTeXText(marks.ReplaceAllString(paragraph[last:at[0]], "$1")))
			bold := marks.ReplaceAllString(paragraph[at[2]:at[3]], "$1")
			b.WriteString(`\textbf{` + typeset.LaTeXText(bold) + "}")
			last = at[1]
		}
		b.WriteString(typeset.LaTeXText(marks.ReplaceAllString(paragraph[last:], "$1")))
		out = append(out, b.String())
	}
	return strings.Join(out, "\n\n")
}

// verbatim makes a line of a program one of LaTeX, with the spaces at its beginning.
func verbatim(line string) string {
	text := strings.TrimLeft(line, " ")
	indent := ""
	if n := len(line) - len(text); n > 0 {
		indent = fmt.Sprintf(`\hspace*{%.1fem}`, float64(n)/2)
	}
	return indent + typeset.LaTeXText(text)
}

// beyond returns the characters of a document that aren't ASCII, sorted.
func beyond(text []byte) []rune {
	seen := map[rune]bool{}
	for _, r := range string(text) {
		if r > '~' {
			seen[r] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// valuesOf returns the files with an ending, sorted by name.
func valuesOf(files map[string][]byte, ext string) (list [][]byte) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ext {
			list = append(list, files[name])
		}
	}
	return list
}
