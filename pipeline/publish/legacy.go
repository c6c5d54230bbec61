package publish

import (
	"regexp"
	"strings"
)

// Folders of builds before folder.jsonl have the texts of stages in README.md alone, each between two comments,
// the first of which names its cell and its port. The texts are claims, so they are still read there. Whatever
// else README.md says of such a folder isn't known before the next run writes it.

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
