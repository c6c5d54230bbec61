package publish

import (
	"fmt"
	"math"
	"strings"
)

// String tells the difference as plain text, the last line without a newline.
func (d *Difference) String() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	d.tell(func(title string, head []string, rows [][]string) {
		add("%s", title)
		width := make([]int, len(head))
		for _, row := range append([][]string{head}, rows...) {
			for i, f := range row {
				width[i] = max(width[i], len([]rune(f)))
			}
		}
		for _, row := range append([][]string{head}, rows...) {
			var b strings.Builder
			for i, f := range row {
				b.WriteString("  " + f + strings.Repeat(" ", width[i]-len([]rune(f))))
			}
			out = append(out, strings.TrimRight(b.String(), " "))
		}
	}, func(sentence string) { add("%s", sentence) })
	return strings.Join(out, "\n")
}

// Markdown tells the difference for a pull request.
func (d *Difference) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### `%s` → `%s`\n", d.A, d.B)
	d.tell(func(title string, head []string, rows [][]string) {
		fmt.Fprintf(&b, "\n**%s**\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat(" :-- |", len(head)))
		for _, row := range rows {
			fields := make([]string, len(row))
			for i, f := range row {
				fields[i] = inline(f)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(fields, " | "))
		}
	}, func(sentence string) { fmt.Fprintf(&b, "\n%s\n", sentence) })
	return b.String()
}

// tell goes through the difference: tables and sentences.
func (d *Difference) tell(table func(title string, head []string, rows [][]string), say func(string)) {
	if d.Empty() {
		say(fmt.Sprintf("no differences: %s compared", count(d.Compared, "score", "scores")))
		return
	}
	for _, part := range []struct {
		words string
		names []string
	}{{"only in " + d.A, d.Removed}, {"only in " + d.B, d.Added}} {
		if len(part.names) > 0 {
			say(fmt.Sprintf("%s: %s: %s", part.words, count(len(part.names), "cell", "cells"), some(part.names, namedCells)))
		}
	}
	if len(d.Redefined) > 0 {
		var parts []string
		for _, s := range d.Redefined {
			parts = append(parts, fmt.Sprintf("%s (%s)", s.Stage, count(s.Cells, "cell", "cells")))
		}
		say("other definitions: " + some(parts, namedCells))
	}
	if len(d.Params) > 0 {
		var rows [][]string
		for _, c := range d.Params {
			name, cells := c.Name, ""
			if c.Stage != "" {
				name = c.Stage + "." + c.Name
				if cells = count(len(c.Cells), "cell", "cells"); len(c.Cells) == 1 {
					cells = c.Cells[0]
				}
			}
			rows = append(rows, []string{name, unset(c.A), unset(c.B), cells})
		}
		table("parameters", []string{"parameter", "before", "now", "where"}, rows)
	}
	if len(d.Scores) > 0 {
		var rows [][]string
		for _, s := range d.Scores {
			rows = append(rows, s.row())
		}
		table("scores (change with its 95 % interval over paired items; * where it excludes 0)",
			[]string{"score", "before", "now", "change", "interval", "n", "within tolerance"}, rows)
	}
	if same := d.Compared - len(d.Scores); same > 0 {
		say(count(same, "score is", "scores are") + " the same")
	}
	if len(d.Ranks) > 0 {
		var rows [][]string
		for _, r := range d.Ranks {
			rows = append(rows, []string{r.Table, r.Row, r.A, r.B})
		}
		table("ranks", []string{"table", "row", "before", "now"}, rows)
	}
}

func unset(s string) string {
	if s == "" {
		return "(not set)"
	}
	return s
}

// row tells a change of a score.
func (s ScoreChange) row() []string {
	stage, _, _ := strings.Cut(s.Cell, "[")
	name := s.Cell
	if scoreName(stage, s.Port) != stage {
		name = s.Port + " of " + s.Cell
	}
	span, n := "", fmt.Sprint(s.Paired)
	if s.Paired > 1 && !math.IsNaN(s.Low) {
		span = fmt.Sprintf("[%s, %s]", signed(s.Low), signed(s.High))
		if s.Low > 0 || s.High < 0 {
			span += " *"
			switch {
			case s.Direction == "higher" && s.Low > 0, s.Direction == "lower" && s.High < 0:
				span += " better"
			case s.Direction == "higher" || s.Direction == "lower":
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
	if s.UndefinedA != s.UndefinedB {
		n += fmt.Sprintf(", undefined %d → %d", s.UndefinedA, s.UndefinedB)
	}
	within := "yes"
	if s.Unreproduced {
		within = "no"
	}
	return []string{name, brief(s.A, 4), brief(s.B, 4), signed(s.Change), span, n, within}
}

func signed(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	s := brief(x, 3)
	if x > 0 {
		s = "+" + s
	}
	return s
}
