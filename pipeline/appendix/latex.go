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
	n[strings.ToLower(name)] = true // some file systems ignore the case of letters
	return name
}

// captionOf returns a caption in LaTeX: the comments at the beginning of a table, without the first one,
// which says what made the table.
func captionOf(table []byte) string {
	var sentences []string
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
			sentences = append(sentences, typeset.LaTeXText(text))
		}
	}
	return strings.Join(sentences, " ")
}

var (
	bold  = regexp.MustCompile(`\*\*(.+?)\*\*`)
	links = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	marks = regexp.MustCompile("\\\\([\\\\`|@*_#\\[\\]<>~!-])")
)

var entities = strings.NewReplacer("`", "", "&lt;", "<", "&gt;", ">", "&amp;", "&")

// answer returns an answer in Markdown as LaTeX: paragraphs, words in bold, and the texts of links.
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

// verbatim returns a line of a program as LaTeX that keeps its indentation.
func verbatim(line string) string {
	text := strings.TrimLeft(line, " ")
	indent := ""
	if n := len(line) - len(text); n > 0 {
		indent = fmt.Sprintf(`\hspace*{%.1fem}`, float64(n)/2)
	}
	return indent + typeset.LaTeXText(text)
}

// beyond returns the sorted characters of a document that aren't ASCII.
func beyond(text []byte) []rune {
	seen := map[rune]bool{}
	for _, r := range string(text) {
		if r > '~' {
			seen[r] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// valuesOf returns the content of the files with an extension, sorted by name.
func valuesOf(files map[string][]byte, ext string) (list [][]byte) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ext {
			list = append(list, files[name])
		}
	}
	return list
}
