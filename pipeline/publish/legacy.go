package publish

import (
	"regexp"
	"strings"
)

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
