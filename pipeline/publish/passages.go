package publish

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (p *Passage) at() at { return at{p.Cell, p.Port} }

func (p *Passage) compare(now *Passage, r *report) bool {
	ok := p.alike(now.Body) || p.isStored(now)
	if ok {
		r.reproduced.Texts++
	} else {
		r.differs("", "text", excerpt(p.Body), excerpt(now.Body))
	}
	return ok
}

func (p *Passage) published(now *Passage) *Passage {
	body := p.Body
	if p.isStored(now) {
		body = now.Body
	}
	return &Passage{Cell: p.Cell, Port: p.Port, Body: body}
}

// isStored reports whether p is what the stage of now wrote and people read something else today: the result
// is reproduced, and its text is shown as it is read today.
func (p *Passage) isStored(now *Passage) bool { return now.stored != "" && p.alike(now.stored) }

func (p *Passage) alike(text string) bool {
	_, ok := alike(textNumber, []byte(p.Body), []byte(text), lastDigit)
	return ok
}

// mergePassages merges the texts of stages.
func (m *merge) mergePassages() {
	var now []*Passage
	for _, c := range m.cells {
		for _, t := range c.Texts {
			if c.State == Done {
				now = append(now, &Passage{Cell: c.Name, Port: t.Port, Body: tidy(t.Markdown),
					stored: tidy(t.Stored)})
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

// Folders of builds before folder.jsonl have the texts of stages in README.md alone, each between two
// comments. The first comment names the cell and the port. Runs have to reproduce these texts, so they are
// still read. The command, titles, directions and notes of such a folder are unknown until the next run
// writes folder.jsonl.

var passageStart = regexp.MustCompile(`^<!-- text (\S+) (\S+)(?: [0-9a-f]{16})? -->$`)

// legacyAbout reads the texts in the README.md of a folder without folder.jsonl.
func legacyAbout(b []byte) *about {
	a := &about{}
	var open *Passage
	var body []string
	for text := range strings.Lines(string(b)) {
		text = strings.TrimRight(text, "\r\n")
		if f := passageStart.FindStringSubmatch(text); f != nil {
			open, body = &Passage{Cell: f[1], Port: f[2]}, nil
		} else if open != nil && text == passageEnd {
			open.Body = strings.Join(body, "\n")
			if !hasConflict(body) {
				a.passages = append(a.passages, open)
			}
			open = nil
		} else if open != nil {
			body = append(body, text)
		}
	}
	return a
}
