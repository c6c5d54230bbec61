package publish

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// readmeHead is how much of README.md may stand before the end of the answer.
const readmeHead = 1 << 16

var (
	sentenceEnd = regexp.MustCompile(`[.!?](\s+[\p{Lu}*]|\s*$)`)
	markup      = regexp.MustCompile("\\*\\*|`|\\\\([[:punct:]])")
)

// Answer returns the first sentence of the answer in a review folder's README.md, as plain
// text, behind the first warning that it says little; "" where the folder has no answer of
// the last run. How scores compare with guessing is no answer.
func Answer(dir string) string {
	file := filepath.Join(dir, "README.md")
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, readmeHead))
	if err != nil {
		return ""
	}
	return answerIn(string(b))
}

func answerIn(readme string) string {
	var paragraph []string
	caution := ""
lines:
	for line := range strings.Lines(readme) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# "), strings.HasPrefix(line, "<!-- text "), line == "" && len(paragraph) == 0:
		case line == "", strings.HasPrefix(line, "<!--"):
			break lines
		case len(paragraph) == 0 && strings.HasPrefix(line, warningMark):
			caution = cmp.Or(caution, strings.TrimPrefix(line, "> ")+" ")
		case len(paragraph) == 0 && (moreWarnings.MatchString(line) || guessLine.MatchString(line)):
		case len(paragraph) == 0 && (strings.ContainsRune("#>|-<", rune(line[0])) || line[0] == '*' && !strings.HasPrefix(line, "**")):
			return "" // a section, a mark or a table: there's no answer before them
		default:
			paragraph = append(paragraph, line)
		}
	}
	text := strings.Join(paragraph, " ")
	if at := sentenceEnd.FindStringIndex(text); at != nil {
		text = text[:at[0]+1]
	}
	if text == "" {
		return ""
	}
	text = markup.ReplaceAllString(caution+text, "$1")
	text = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
}
