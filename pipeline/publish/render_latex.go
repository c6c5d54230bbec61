package publish

import (
	"bytes"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// latexRenderer writes tables/*.tex, with a tabular for each table that fits on a page.
var latexRenderer = renderer{
	name:  "latex",
	files: []pattern{{"tables/*.tex", unionAttributes}},
	render: func(f *Folder, add func(name string, b []byte)) {
		for _, s := range f.Sheets {
			if name := s.latexFile(); name != "" {
				add(name, []byte(f.gridOf(s, latexRows).LaTeX(s.title())))
			}
		}
	},
	read: func(_ *disk, _ string, b []byte) bool { return bytes.HasPrefix(b, []byte(typeset.LaTeXMark)) },
}

// latexRows is how many rows fit on a page.
const latexRows = 60

// latexFile returns the name of the LaTeX file of a table, "" for a table that doesn't fit on a page.
func (s *Sheet) latexFile() string {
	if len(s.Rows) > latexRows {
		return ""
	}
	return strings.TrimSuffix(s.File, ".csv") + ".tex"
}
