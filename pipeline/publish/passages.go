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

func (p *Passage) published(*Passage) *Passage {
	return &Passage{Cell: p.Cell, Port: p.Port, Body: p.Body}
}

// mergePassages merges the texts of stages.
func (m *merge) mergePassages() {
	var now []*Passage
	for _, c := range m.cells {
		for _, t := range c.Texts {
			if c.State == Done {
				now = append(now, &Passage{Cell: c.Name, Port: t.Port, Body: tidy(t.Markdown)})
			}
		}
	}
	m.out.Passages = mergeFile(m, folderFile, "", m.disk.about.passages, now)
	slices.SortStableFunc(m.out.Passages, func(a, b *Passage) int {
		c := m.out.compareShown(a.Cell, b.Cell)
		return cmp.Or(c, cmp.Compare(a.Port, b.Port), cmp.Compare(a.Body, b.Body))
	})
}

// tidy returns a text that neither hides what follows it in README.md, by opening a comment, nor has lines
// that look like git's conflict markers.
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
