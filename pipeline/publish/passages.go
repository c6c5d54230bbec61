package publish

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

func (p *Passage) at() at { return at{p.Cell, p.Port} }

func (p *Passage) compare(now *Passage, r *report) bool {
	_, ok := alike(textNumber, []byte(p.Body), []byte(now.Body), lastDigit)
	if ok {
		r.reproduced.Texts++
	} else {
		r.differs("", "text", excerpt(p.Body), excerpt(now.Body))
	}
	return ok
}

func (p *Passage) published(*Passage) *Passage { return p }

// mergePassages merges the texts of README.md.
func (m *merge) mergePassages() {
	var now []*Passage
	for _, c := range m.cells {
		for _, t := range c.Texts {
			if c.State == Done {
				now = append(now, &Passage{Cell: c.Name, Port: t.Port, Body: tidy(t.Markdown)})
			}
		}
	}
	m.out.Passages = mergeFile(m, "README.md", "", m.disk.passages, now)
	slices.SortStableFunc(m.out.Passages, func(a, b *Passage) int {
		c := m.out.compareShown(a.Cell, b.Cell)
		return cmp.Or(c, cmp.Compare(a.Port, b.Port), cmp.Compare(a.Body, b.Body))
	})
}

// tidy makes a text one that readPassages reads back.
func tidy(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "<!--", "&lt;!--")
	var lines []string
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\r\n")
		if hasConflict([]string{line}) {
			line = "\\" + line
		}
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// excerpt returns the beginning of a text, quoted.
func excerpt(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > 40 {
		return strconv.Quote(string(r[:40]) + "…")
	}
	return strconv.Quote(string(r))
}

// earlier stands before a text of README.md that the run didn't finish.
const earlier = "*Of an earlier run, this one didn't finish it:*"

// What README.md tells below its tables of what isn't in the folder.
var narrowedStarts = []string{"**Narrowed**, ", "Of an earlier run, because "}

// mostNotes is how many paragraphs are read of a README.md, which somebody else may have written.
const mostNotes = 40

// readNotes returns what README.md tells outside the texts of stages, in paragraphs of Markdown: what stands
// before its first section, and how the run was narrowed, with the lists of that. Quotations are warnings.
func readNotes(readme []string) (notes []string) {
	inText, inHead := false, true
	for i, line := range readme {
		begins := func(s string) bool { return strings.HasPrefix(line, s) }
		inText = inText && line != passageEnd || passageStart.MatchString(line)
		inHead = inHead && (inText || !begins("## "))
		switch {
		case inText || len(notes) == mostNotes:
		case slices.ContainsFunc(narrowedStarts, begins):
			list := readme[min(i+2, len(readme)):]
			end := slices.IndexFunc(list, func(s string) bool { return !strings.HasPrefix(s, "- ") })
			if end < 0 {
				end = len(list)
			}
			notes = append(notes, "> "+line+"\n\n"+strings.Join(list[:end], "\n"))
		case inHead && !slices.Contains([]string{"", ">", earlier, passageEnd}, line) &&
			!begins("# "):
			notes = append(notes, line)
		}
	}
	return notes
}

// markEarlier marks the texts that README.md calls those of an earlier run.
func markEarlier(texts []*Passage, readme []string) {
	for i, line := range readme {
		f := passageStart.FindStringSubmatch(line)
		if f == nil || i < 2 || readme[i-2] != earlier {
			continue
		}
		for _, p := range texts {
			p.Old = p.Old || p.Cell == f[1] && p.Port == f[2]
		}
	}
}
