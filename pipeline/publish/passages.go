package publish

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

func (p *Passage) key() string  { return "" }
func (p *Passage) usable() bool { return true }

func (p *Passage) compare(now *Passage, r *report) bool {
	_, ok := alike(textNumber, []byte(p.Body), []byte(now.Body), lastDigit)
	switch {
	case r == nil:
	case ok:
		r.reproduced.Texts++
	default:
		r.differs("", "text", excerpt(p.Body), excerpt(now.Body))
	}
	return ok
}

func (p *Passage) published(*Passage) *Passage { return p }

// mergePassages merges the texts of README.md.
func (m *merge) mergePassages() {
	published := map[at][]*Passage{}
	for _, p := range m.disk.passages {
		a := at{p.Cell, p.Port}
		published[a] = append(published[a], p)
	}
	var now []group[*Passage]
	for _, c := range m.cells {
		for _, t := range c.Texts {
			if c.State == Done {
				p := &Passage{Cell: c.Name, Port: t.Port, Body: tidy(t.Markdown)}
				now = append(now, group[*Passage]{at: at{p.Cell, p.Port}, rows: []*Passage{p}})
			}
		}
	}
	for _, g := range mergeFile(m, "README.md", published, now) {
		for _, p := range g.rows {
			p.Old = g.old
			m.out.Passages = append(m.out.Passages, p)
		}
	}
	slices.SortStableFunc(m.out.Passages, func(a, b *Passage) int {
		return cmp.Or(m.out.compareShown(a.Cell, b.Cell), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Body, b.Body))
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
