package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/panics"
)

// A Diag is one diagnostic of an experiment: a message at a place in the text.
type Diag struct {
	File string `json:"file,omitempty"`    // as the user named it; for a flag, the flag with its value
	Line int    `json:"line,omitempty"`    // from 1; 0 for a place without lines, as a flag
	Col  int    `json:"column,omitempty"`  // from 1, in characters
	Path string `json:"path,omitempty"`    // into the data: stages.maps.with
	Msg  string `json:"message,omitempty"` // a clause, lower-case
	Hint string `json:"hint,omitempty"`    // a remedy, "" if unknown
	Text string `json:"-"`                 // the line of the file, "" if there is none
}

// String returns file:line:col, path and message, then the line with a caret below the column, then the hint.
func (d Diag) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Col)
	}
	b.WriteString(": ")
	if d.Path != "" {
		b.WriteString(d.Path + ": ")
	}
	b.WriteString(d.Msg)
	if d.Line > 0 && d.Text != "" {
		d.writeExcerpt(&b)
	}
	if d.Hint != "" {
		b.WriteString("\nhint: " + d.Hint)
	}
	return b.String()
}

// excerptWidth is how many characters of a long line are shown.
const excerptWidth = 120

func (d Diag) writeExcerpt(b *strings.Builder) {
	line, col := []rune(d.Text), max(d.Col, 1)
	if len(line) > excerptWidth {
		from := max(0, min(col-excerptWidth/2, len(line)-excerptWidth))
		line, col = line[from:from+excerptWidth], col-from
	}
	number := fmt.Sprintf("%5d", d.Line)
	fmt.Fprintf(b, "\n%s | %s\n%*s | ", number, strings.Map(printable, string(line)), len(number), "")
	for i := range min(col-1, len(line)) {
		if line[i] == '\t' {
			b.WriteByte('\t') // so that the caret stays below its column
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('^')
}

// printable replaces characters that would move a terminal's cursor.
func printable(r rune) rune {
	if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029') {
		return '·'
	}
	return r
}

// Diags are all the diagnostics of an experiment, sorted by place. A non-empty Diags is an error.
type Diags []Diag

// Error returns one paragraph for each diagnostic, and their number.
func (ds Diags) Error() string {
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(d.String() + "\n")
	}
	fmt.Fprintf(&b, "%d %s", len(ds), plural(len(ds), "problem"))
	return b.String()
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// Sort sorts by place.
func (ds Diags) Sort() {
	slices.SortStableFunc(ds, func(a, b Diag) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Col, b.Col), cmp.Compare(a.Msg, b.Msg))
	})
}

// maxDiags bounds the number of diagnostics that are kept: nobody reads more at once.
const maxDiags = 200

// diagnostics collects diagnostics, each once.
type diagnostics struct {
	all  Diags
	seen map[Diag]bool
}

func (ds *diagnostics) add(d Diag) {
	if ds.seen[d] || len(ds.all) >= maxDiags {
		return
	}
	if ds.seen == nil {
		ds.seen = map[Diag]bool{}
	}
	ds.seen[d] = true
	ds.all = append(ds.all, d)
}

// mergeLast adds the stage that the last diagnostic begins with to an earlier one that says the same of other
// stages at the same place: one mistake is reported once.
func (ds *diagnostics) mergeLast(stage string) {
	if len(ds.all) == 0 {
		return
	}
	at := len(ds.all) - 1
	last := ds.all[at]
	text, ok := strings.CutPrefix(last.Msg, stage+": ")
	if !ok {
		return
	}
	for i := range ds.all[:at] {
		d := ds.all[i]
		names, ok := strings.CutSuffix(d.Msg, ": "+text)
		if d.Msg = last.Msg; !ok || d != last {
			continue
		}
		if list := strings.Split(names, ", "); !slices.Contains(list, stage) {
			ds.all[i].Msg = names + ", " + stage + ": " + text
		}
		ds.all = ds.all[:at]
		return
	}
}

// report adds a diagnostic at the place of n.
func (ds *diagnostics) report(n *yamlNode, hint, format string, args ...any) {
	ds.add(n.diag(hint, fmt.Sprintf(format, args...)))
}

func (n *yamlNode) diag(hint, msg string) Diag {
	d := Diag{File: n.src.name, Path: n.path(), Msg: msg, Hint: hint}
	if !n.src.flag {
		d.Line, d.Col, d.Text = n.line, n.col, n.src.line(n.line)
	}
	return d
}

func (ds *diagnostics) sorted() Diags {
	ds.all.Sort()
	return ds.all
}

// is returns whether n is of a kind. Another kind is reported, except a key without a value.
func (ds *diagnostics) is(n *yamlNode, kind yamlKind, what, hint string) bool {
	if n.kind != kind && n.kind != yamlNull {
		ds.report(n, hint, "%v is not %s", n, what)
	}
	return n.kind == kind
}

// unknownAxis reports the name of an axis that isn't known.
func (ds *diagnostics) unknownAxis(n *yamlNode, name string, known []string) {
	if !n.scalar() {
		ds.report(n, "", "%v is not the name of an axis", n)
		return
	}
	ds.report(n, didYouMean(name, "axes", known), "no axis is called %q", name)
}

// unknownStage reports the name of a stage that the experiment doesn't have.
func (ds *diagnostics) unknownStage(n *yamlNode, name string, known []string) {
	ds.report(n, didYouMean(name, "stages", known), "no stage is called %q", name)
}

// unknownID reports an id that an axis doesn't have.
func (ds *diagnostics) unknownID(n *yamlNode, id, axis string, known []string) {
	ds.report(n, didYouMean(id, "ids of "+axis, known), "the axis %q has no id %q", axis, id)
}

// A BugError is a panic inside a stage or the engine.
type BugError struct{ Err error }

func (e *BugError) Error() string { return fmt.Sprintf("a bug in runexp: %v", e.Err) }
func (e *BugError) Unwrap() error { return e.Err }

// Bug returns a BugError.
func Bug(format string, args ...any) error { return &BugError{fmt.Errorf(format, args...)} }

// Catch turns a panic of the deferring function into an error that carries the stack: a bug of one stage is
// that stage's failure.
func Catch(err *error) {
	if v := recover(); v != nil {
		r := panics.NewRecovered(2, v)
		*err = &BugError{r.AsError()}
	}
}
