package plan

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// maxExperimentBytes bounds an experiment file. The largest one that a person could review is far below.
const maxExperimentBytes = 1 << 20

// A sourceText is a text that an experiment is read from: a file, or the value of a flag.
type sourceText struct {
	name  string // as it stands in diagnostics
	dir   string // what the paths in it are relative to
	data  []byte
	flag  bool // a flag's value: it has no lines worth showing
	lines []string
}

// split returns the lines, whatever ends them.
func (s *sourceText) split() []string {
	if s.lines == nil {
		text := strings.ReplaceAll(string(s.data), "\r\n", "\n")
		s.lines = strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
	}
	return s.lines
}

// line returns a line, counted from 1, "" if there is none.
func (s *sourceText) line(n int) string {
	if lines := s.split(); !s.flag && n > 0 && n <= len(lines) {
		return lines[n-1]
	}
	return ""
}

// place returns a node for diagnostics of a place that has no node of its own.
func (s *sourceText) place(line, col int) *yamlNode { return &yamlNode{src: s, line: line, col: col} }

// readExperiment reads a file, refusing what can't be an experiment.
func readExperiment(file string) ([]byte, error) {
	f, err := stages.OpenFile(file)
	if errors.Is(err, stages.ErrNotRegular) {
		return nil, &fs.PathError{Op: "open", Path: file, Err: cause(err)}
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than allowed, so that a longer file is noticed.
	return io.ReadAll(io.LimitReader(f, maxExperimentBytes+1))
}

// cause drops the operation and the path from an error of the file system.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// checkText reports bytes that can't stand in an experiment file, and returns whether the text can be parsed.
// It takes the byte order mark off.
func (s *sourceText) checkText(ds *diagnostics) bool {
	if len(s.data) > maxExperimentBytes {
		s.lines = []string{""}
		ds.report(s.place(1, 1), "", "the file has more than %d bytes", maxExperimentBytes)
		return false
	}
	if bytes.HasPrefix(s.data, []byte("\xff\xfe")) || bytes.HasPrefix(s.data, []byte("\xfe\xff")) {
		s.lines = []string{""}
		ds.report(s.place(1, 1), "save it as UTF-8", "the file is UTF-16 text")
		return false
	}
	s.data = bytes.TrimPrefix(s.data, []byte("\ufeff"))
	line, col := 1, 1
	for i := 0; i < len(s.data); {
		r, size := utf8.DecodeRune(s.data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			ds.report(s.place(line, col), "save it as UTF-8", "the text isn't UTF-8")
			return false
		case r == 0:
			ds.report(s.place(line, col), "", "a NUL byte")
			return false
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0,
			r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			// NEL, LS and PS end a line for YAML and for few editors.
			ds.report(s.place(line, col), "", "the control character %U", r)
			return false
		}
		i += size
		if r == '\n' || r == '\r' && (i >= len(s.data) || s.data[i] != '\n') {
			line, col = line+1, 1
		} else {
			col++
		}
	}
	return true
}
