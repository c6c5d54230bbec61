package plan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// maxExperimentBytes bounds an experiment file. The largest file that a person could review is much
// smaller.
const maxExperimentBytes = 1 << 20

// A sourceText is a part of an experiment's text: a file, or the value of a flag.
type sourceText struct {
	name  string // for diagnostics
	dir   string // the folder to which its paths are relative
	data  []byte
	flag  bool // a flag's value: it has no lines worth showing
	lines []string
}

// split returns the lines, without the characters that end them.
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

// at returns a node for diagnostics of a place without a node.
func (s *sourceText) at(line, col int) *yamlNode {
	return &yamlNode{place: place{src: s, line: line, col: col}}
}

// offset is at for the place after this many bytes.
func (s *sourceText) offset(bytes int) *yamlNode {
	before := (&sourceText{data: s.data[:bytes]}).split()
	return s.at(len(before), 1+utf8.RuneCountInString(before[len(before)-1]))
}

// readExperiment reads a file that may be an experiment.
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

// checkText reports characters that an experiment file can't contain, and returns whether the text can be
// parsed. It removes the byte order mark.
func (s *sourceText) checkText(ds *diagnostics) bool {
	text := strings.TrimPrefix(string(s.data), "\ufeff")
	switch s.data = []byte(text); {
	case len(text) > maxExperimentBytes:
		s.lines = []string{""}
		ds.report(s.at(1, 1), "", "the file has more than %d bytes", maxExperimentBytes)
		return false
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		s.lines = []string{""}
		ds.report(s.at(1, 1), "save it as UTF-8", "the file is UTF-16 text")
		return false
	}
	for i, r := range text {
		msg, hint := "", ""
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			msg, hint = "the text isn't UTF-8", "save it as UTF-8"
		case r == 0:
			msg = "a NUL byte"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0,
			r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			// NEL, LS and PS end a line for YAML, though for few editors.
			msg = fmt.Sprintf("the control character %U", r)
		default:
			continue
		}
		ds.report(s.offset(i), hint, "%s", msg)
		return false
	}
	return true
}
