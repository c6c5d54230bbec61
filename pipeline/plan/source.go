package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// maxExperimentBytes bounds an experiment file. The largest one that a person
// could review is far below.
const maxExperimentBytes = 1 << 20

// A sourceText is a text that an experiment is read from: a file, or the value
// of a flag.
type sourceText struct {
	name  string // as it stands in complaints
	dir   string // what the paths in it are relative to
	data  []byte
	flag  bool // a flag's value: it has no lines worth showing
	lines []string
}

func (s *sourceText) line(n int) string {
	if s.lines == nil {
		text := strings.ReplaceAll(string(s.data), "\r\n", "\n")
		s.lines = strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
	}
	if s.flag || n <= 0 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// complain puts a complaint about a place for which there is no node yet.
func (s *sourceText) complain(c *complaints, line, col int, hint, msg string) {
	d := Diag{File: s.name, Msg: msg, Hint: hint}
	if !s.flag {
		d.Line, d.Col, d.Text = line, col, s.line(line)
	}
	c.put(d)
}

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

// checkText complains about what can't stand in an experiment file, whatever it
// says, and reports whether it's worth parsing. It takes the byte order mark off.
func (s *sourceText) checkText(c *complaints) bool {
	if len(s.data) > maxExperimentBytes {
		s.lines = []string{""}
		s.complain(c, 1, 1, "", "the file has more than "+strconv.Itoa(maxExperimentBytes)+" bytes")
		return false
	}
	if bytes.HasPrefix(s.data, []byte("\xff\xfe")) || bytes.HasPrefix(s.data, []byte("\xfe\xff")) {
		s.lines = []string{""}
		s.complain(c, 1, 1, "save it as UTF-8", "the file is UTF-16 text")
		return false
	}
	s.data = bytes.TrimPrefix(s.data, []byte("\ufeff"))
	line, col := 1, 1
	for i := 0; i < len(s.data); {
		r, size := rune(s.data[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(s.data[i:])
		}
		switch {
		case r == utf8.RuneError && size == 1:
			s.complain(c, line, col, "save it as UTF-8", "the text isn't UTF-8")
			return false
		case r == 0:
			s.complain(c, line, col, "", "a NUL byte")
			return false
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			// NEL, LS and PS end a line for YAML and for few editors.
			s.complain(c, line, col, "", fmt.Sprintf("the control character %U", r))
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
