package plan

import (
	"sort"
	"strconv"
	"strings"
)

// A Diag is one complaint about an experiment, at the place in the text that it
// concerns.
type Diag struct {
	File string // as the user named it; for a flag, the flag with its value
	Line int    // from 1; 0 when the place has no line, as in a flag
	Col  int    // from 1, in characters
	Path string // into the data: stages.maps.with
	Msg  string // a clause, lower-case
	Hint string // what to do about it, "" if unknown
	Text string // the line of the file, "" if there is none
}

// String returns the complaint as people read it: file:line:col, path, message,
// then the line with a caret below the column, then the hint.
func (d Diag) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(d.Line))
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(d.Col))
	}
	b.WriteString(": ")
	if d.Path != "" {
		b.WriteString(d.Path)
		b.WriteString(": ")
	}
	b.WriteString(d.Msg)
	if d.Line > 0 && d.Text != "" {
		d.writeExcerpt(&b)
	}
	if d.Hint != "" {
		b.WriteString("\nhint: ")
		b.WriteString(d.Hint)
	}
	return b.String()
}

// excerptWidth is how many characters of a long line are shown.
const excerptWidth = 120

func (d Diag) writeExcerpt(b *strings.Builder) {
	line, col := []rune(d.Text), max(d.Col, 1)
	if len(line) > excerptWidth {
		from := max(0, min(col-excerptWidth/2, len(line)-excerptWidth))
		line, col = line[from:min(len(line), from+excerptWidth)], col-from
	}
	number := strconv.Itoa(d.Line)
	if n := 5 - len(number); n > 0 {
		number = strings.Repeat(" ", n) + number
	}
	b.WriteByte('\n')
	b.WriteString(number)
	b.WriteString(" | ")
	for _, r := range line {
		b.WriteRune(printable(r))
	}
	b.WriteByte('\n')
	b.WriteString(strings.Repeat(" ", len(number)))
	b.WriteString(" | ")
	for i := range min(col-1, len(line)) {
		if line[i] == '\t' {
			b.WriteByte('\t') // so that the caret stays below its column
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('^')
}

// printable replaces what would move a terminal's cursor.
func printable(r rune) rune {
	if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029') {
		return '·'
	}
	return r
}

// Diags are all the complaints about an experiment, sorted by place. A non-empty
// Diags is an error.
type Diags []Diag

// Error returns one paragraph a complaint, and how many there are.
func (ds Diags) Error() string {
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(d.String())
		b.WriteByte('\n')
	}
	b.WriteString(strconv.Itoa(len(ds)))
	b.WriteString(plural(len(ds), " problem", " problems"))
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// maxDiags bounds the complaints that are kept: who makes more wants to start
// with the first ones.
const maxDiags = 200

// complaints collects what is wrong, once each.
type complaints struct {
	list Diags
	seen map[Diag]bool
}

func (c *complaints) put(d Diag) {
	if c.seen[d] || len(c.list) >= maxDiags {
		return
	}
	if c.seen == nil {
		c.seen = map[Diag]bool{}
	}
	c.seen[d] = true
	c.list = append(c.list, d)
}

// at complains about a place in a text.
func (c *complaints) at(n *yamlNode, hint, msg string) { c.put(diagAt(n, hint, msg)) }

func diagAt(n *yamlNode, hint, msg string) Diag {
	d := Diag{File: n.src.name, Path: n.path(), Msg: msg, Hint: hint}
	if !n.src.flag {
		d.Line, d.Col, d.Text = n.line, n.col, n.src.line(n.line)
	}
	return d
}

func (c *complaints) sorted() Diags {
	c.list.Sort()
	return c.list
}

// Sort sorts by place.
func (ds Diags) Sort() {
	sort.SliceStable(ds, func(i, j int) bool {
		a, b := ds[i], ds[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		if a.Col != b.Col {
			return a.Col < b.Col
		}
		return a.Msg < b.Msg
	})
}
