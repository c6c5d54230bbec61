package publish

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

var trailing = regexp.MustCompile("(?m) +$")

// String returns the difference as plain text, without the last newline.
func (d *Difference) String() string {
	var b strings.Builder
	for _, p := range d.paragraphs() {
		fmt.Fprintln(&b, p.text)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range p.rows {
			fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
		}
		w.Flush() // a strings.Builder takes everything
	}
	return trailing.ReplaceAllString(strings.TrimSuffix(b.String(), "\n"), "")
}

// Markdown returns the difference for a pull request.
func (d *Difference) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s → %s\n", typeset.Code(d.A), typeset.Code(d.B))
	for _, p := range d.paragraphs() {
		if p.rows == nil {
			fmt.Fprintf(&b, "\n%s\n", typeset.Inline(p.text))
			continue
		}
		text := typeset.MarkdownTable(p.rows[0], slices.Repeat([]string{":--"}, len(p.rows[0])), p.rows[1:])
		if n := len(p.rows) - 1; n > openRows {
			const collapsed = "\n<details><summary>%s: %s</summary>\n\n%s\n\n</details>\n"
			fmt.Fprintf(&b, collapsed, p.text, count(n, "row"), text)
			continue
		}
		fmt.Fprintf(&b, "\n**%s**\n\n%s\n", p.text, text)
	}
	return b.String()
}

// A paragraph is a sentence, or the title of a table whose first row names the columns.
type paragraph struct {
	text string
	rows [][]string
}

func (d *Difference) paragraphs() (list []paragraph) {
	add := func(text string, rows ...[]string) { list = append(list, paragraph{text, rows}) }
	if d.Empty() {
		add(fmt.Sprintf("no differences: %s compared", count(d.Compared, "score")))
		return list
	}
	if was, is := d.Answers[0], d.Answers[1]; was != is {
		add("answer before: " + cmp.Or(was, "none"))
		add("answer now: " + cmp.Or(is, "none"))
	} else if is != "" {
		add("the answer is the same: " + is)
	}
	if n := len(d.Removed); n > 0 {
		add(fmt.Sprintf("only in %s: %s: %s", d.A, count(n, "cell"), some(d.Removed, namedCells)))
	}
	if n := len(d.Added); n > 0 {
		add(fmt.Sprintf("only in %s: %s: %s", d.B, count(n, "cell"), some(d.Added, namedCells)))
	}
	if len(d.Redefined) > 0 {
		add("other definitions: " + some(counted(d.Redefined), namedCells))
	}
	if len(d.Params) > 0 {
		add("parameters", slices.Insert(d.Params, 0, []string{"parameter", "before", "now", "where"})...)
	}
	if len(d.Scores) > 0 {
		rows := [][]string{{"score", "before", "now", "change", "interval", "n", "within tolerance"}}
		for _, s := range d.Scores {
			rows = append(rows, s.row())
		}
		add("scores (change with its "+interval.Label(d.Items)+", paired; * where it excludes 0)", rows...)
	}
	if same := d.Compared - len(d.Scores); same > 0 {
		is := "are"
		if same == 1 {
			is = "is"
		}
		add(count(same, "score") + " " + is + " the same")
	}
	if len(d.Ranks) > 0 {
		add("ranks", slices.Insert(d.Ranks, 0, []string{"table", "row", "before", "now"})...)
	}
	return list
}

// row returns a change of a score as fields of a table.
func (s *ScoreChange) row() []string {
	span, n, within := "", fmt.Sprint(s.Paired), "yes"
	if s.Paired > 1 && !math.IsNaN(s.Low) {
		span = fmt.Sprintf("[%s, %s]", signed(s.Low), signed(s.High))
		if s.Low > 0 || s.High < 0 {
			span += " *"
			if d := s.B.Direction; d == stages.Higher && s.Low > 0 || d == stages.Lower && s.High < 0 {
				span += " better"
			} else if d == stages.Higher || d == stages.Lower {
				span += " worse"
			}
		}
	}
	if s.Paired == 0 {
		n = fmt.Sprint(s.NB)
		if s.NA != s.NB {
			n = fmt.Sprintf("%d → %d", s.NA, s.NB)
		}
	}
	if s.A.Undefined != s.B.Undefined {
		n += fmt.Sprintf(", undefined %d → %d", s.A.Undefined, s.B.Undefined)
	}
	if s.Unreproduced {
		within = "no"
	}
	name, before, now := s.A.of(s.Cell), typeset.Brief(s.A.Value, 4), typeset.Brief(s.B.Value, 4)
	return []string{name, before, now, signed(s.Change), span, n, within}
}

func signed(x float64) string {
	switch {
	case math.IsNaN(x):
		return ""
	case x > 0:
		return "+" + typeset.Brief(x, 3)
	}
	return typeset.Brief(x, 3)
}
