package publish

import (
	"bytes"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// latexRenderer writes tables/*.tex: a tabular of each table that fits a page.
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

// latexRows is how many rows a page has room for.
const latexRows = 60

// latexFile names the file of a table as LaTeX, "" if it doesn't fit a page.
func (s *Sheet) latexFile() string {
	if len(s.Rows) > latexRows {
		return ""
	}
	return strings.TrimSuffix(s.File, ".csv") + ".tex"
}
