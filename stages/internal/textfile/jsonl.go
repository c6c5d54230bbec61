package textfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// lines reads a file of JSON lines.
type lines struct {
	r      *bufio.Reader
	offset int64 // of the next line
	line   int   // its number, less 1
}

func newLines(r io.Reader, offset int64) *lines {
	return &lines{r: bufio.NewReaderSize(r, 1<<16), offset: offset}
}

// next returns the next line that isn't blank, and its place. The error is io.EOF after the last.
func (l *lines) next() (text []byte, at place, err error) {
	for {
		at = place{offset: l.offset, line: l.line + 1}
		text = nil
		for {
			part, err := l.r.ReadSlice('\n')
			text = append(text, part...)
			if len(text) > maxRecord {
				return nil, at, fmt.Errorf("more than %d bytes without a line break", maxRecord)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !(errors.Is(err, io.EOF) && len(text) > 0) {
				return nil, at, err
			}
			break
		}
		l.offset += int64(len(text))
		l.line++
		if at.length = len(text); len(bytes.TrimSpace(text)) > 0 {
			return text, at, nil
		}
	}
}

// fieldsOf reads a line of JSON.
func fieldsOf(line []byte) (fields map[string]json.RawMessage, err error) {
	if !utf8.Valid(line) {
		return nil, errNotUTF8
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		if begin := bytes.TrimSpace(line); begin[0] == '[' {
			return nil, errors.New("a list of JSON: JSON lines have an object a line, as {\"text\": \"…\"}")
		}
		return nil, fmt.Errorf("not an object of JSON: %w", err)
	}
	if fields == nil {
		return nil, errors.New("null in place of an object of JSON")
	}
	return fields, nil
}

// ofFields returns the record in the fields of a line, by their names.
func ofFields(fields map[string]json.RawMessage, n Fields) (r *Record, err error) {
	if fields[n.Text] == nil {
		return nil, fmt.Errorf("no %q: each line has its text", n.Text)
	}
	r = &Record{}
	if r.Text, err = stringOf(fields[n.Text]); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Text, err)
	}
	for name, to := range map[string]*string{n.Label: &r.Label, n.ID: &r.ID} {
		b := fields[name]
		switch {
		case b == nil || string(b) == "null":
		case b[0] == '"':
			if *to, err = stringOf(b); err == nil && strings.TrimSpace(*to) == "" {
				err = errors.New("it is empty")
			}
			*to = strings.TrimSpace(*to)
		case b[0] == '{' || b[0] == '[' || b[0] == 't' || b[0] == 'f':
			err = fmt.Errorf("%.40s isn't a number or a name", b)
		default:
			*to = string(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if b := fields[n.Rationale]; b != nil {
		r.Rationale, err = spans(b)
	}
	return r, err
}

// stringOf reads a string of JSON. A half of a surrogate pair, which Go's package replaces, is an error: the
// text would be another.
func stringOf(b []byte) (s string, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%.40s isn't a text", b)
	}
	if strings.ContainsRune(s, utf8.RuneError) && !bytes.ContainsRune(b, utf8.RuneError) &&
		!bytes.Contains(bytes.ToLower(b), []byte(`\ufffd`)) {
		return "", errors.New("it has a half of a surrogate pair, which isn't a character")
	}
	return s, nil
}
