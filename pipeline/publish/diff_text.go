package publish

import (
	"cmp"
	"fmt"
	"maps"
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
	add(d.Summary())
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
		add("parameters", under(d.ParamRows(), "parameter", "before", "now", "where")...)
	}
	if len(d.Scores) > 0 {
		rows := d.scoreRows()
		title := "scores (change with its " + interval.Label(d.Items) + ", paired; * where it excludes 0"
		if d.fewest() < fewestItems {
			title += fmt.Sprintf(", of %d %s or more", fewestItems, d.Items)
		}
		add(title+")", rows...)
		if few := interval.Few(d.fewest(), d.Items); few != "" {
			add(few)
		}
	}
	if same := d.Compared - len(d.Scores); same > 0 {
		is := "are"
		if same == 1 {
			is = "is"
		}
		add(count(same, "score") + " " + is + " the same")
	}
	if len(d.Ranks) > 0 {
		add("ranks", under(d.RankRows(), "table", "row", "before", "now")...)
	}
	return list
}

// under returns rows below a header, in a list of their own.
func under(rows [][]string, header ...string) [][]string {
	return append([][]string{header}, rows...)
}

// scoreRows returns the changes of scores as rows below their header: those first whose interval excludes 0.
// Only scores of the same definition are within a tolerance or not.
func (d *Difference) scoreRows() [][]string {
	rows := slices.Clone(d.Scores)
	order := []string{worse, better, changed, uncertain, tooFew, untested, asBefore}
	slices.SortStableFunc(rows, func(a, b ScoreChange) int {
		return cmp.Compare(slices.Index(order, a.Verdict()), slices.Index(order, b.Verdict()))
	})
	head := []string{"score", "before", "now", "change", "interval", "n"}
	tolerances := slices.ContainsFunc(rows, func(s ScoreChange) bool { return !s.Redefined })
	if tolerances {
		head = append(head, "within tolerance")
	}
	var texts [][]string
	for _, s := range rows {
		texts = append(texts, s.row()[:len(head)])
	}
	return under(texts, head...)
}

// fewest returns the smallest number of items of an interval, a large one without intervals.
func (d *Difference) fewest() int {
	n := math.MaxInt
	for _, s := range d.Scores {
		if s.Paired > 1 {
			n = min(n, s.Paired)
		}
	}
	return n
}

// row returns a change of a score as fields of a table.
func (s *ScoreChange) row() []string {
	span, n := "", fmt.Sprint(s.Paired)
	if s.Paired > 1 && !math.IsNaN(s.Low) {
		span = fmt.Sprintf("[%s, %s]", signed(s.Low), signed(s.High))
		if s.Certain() {
			span += " *"
		}
		if v := s.Verdict(); v == better || v == worse {
			span += " " + v
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
	name, before, now := s.A.of(s.Cell), typeset.Brief(s.A.Value, 4), typeset.Brief(s.B.Value, 4)
	return []string{name, before, now, signed(s.Change), span, n, s.Within()}
}

// Within is "yes" for a change within the tolerance, "no" for another one, and "" where the definition isn't
// the same: no tolerance speaks of that.
func (s *ScoreChange) Within() string {
	switch {
	case s.Redefined:
		return ""
	case s.Unreproduced:
		return "no"
	}
	return "yes"
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

// namedSubjects is how many ids of an axis the summary speaks of one by one.
const namedSubjects = 3

// Summary says in one sentence whose scores are worse or better, and which ranks stayed.
func (d *Difference) Summary() string {
	var moved []*ScoreChange
	small, outside := 0, 0
	for i := range d.Scores {
		s := &d.Scores[i]
		if !s.moved() {
			small++
			continue
		}
		if moved = append(moved, s); !s.Redefined {
			outside++
		}
	}
	var clauses []string
	add := func(format string, args ...any) { clauses = append(clauses, fmt.Sprintf(format, args...)) }
	if outside > 0 {
		add("%s with the same definition as before: outside the tolerance", count(outside, "score"))
	}
	axis, ids := d.subjects(moved)
	within := ""
	if small > 0 {
		within = " beyond the tolerance"
	}
	switch {
	case len(moved) == 0 && d.Compared == 0:
		add("no score is in both")
	case len(moved) == 0:
		add("no score changed%s", within)
	case len(ids) == 0 || len(ids) > namedSubjects:
		add("%s%s", verdicts("", d.Compared, moved, d.Items), explained(moved, d.Items))
	default:
		for i, id := range ids {
			of := slices.DeleteFunc(slices.Clone(moved), func(s *ScoreChange) bool {
				return idOn(axis, s.Cell) != id
			})
			all, why := 0, ""
			for cell, n := range d.scored {
				if idOn(axis, cell) == id {
					all += n
				}
			}
			if i == len(ids)-1 {
				why = explained(moved, d.Items)
			}
			add("%s%s", verdicts(id, all, of, d.Items), why)
		}
		add("no other %s's scores changed%s", axis, within)
	}
	if text := d.leading.summary(); text != "" {
		clauses = append(clauses, text)
	}
	return strings.Join(clauses, "; ")
}

// subjects returns the axis on which changes are of the smallest share of ids, and these ids: whose scores
// changed. It returns none where every id of every axis has a change.
func (d *Difference) subjects(moved []*ScoreChange) (axis string, ids []string) {
	all, of := map[string]map[string]bool{}, map[string]map[string]bool{}
	on := map[string]int{} // the changes of cells on an axis
	add := func(to map[string]map[string]bool, c stages.Coord) {
		if to[c.Axis] == nil {
			to[c.Axis] = map[string]bool{}
		}
		to[c.Axis][c.ID] = true
	}
	for cell := range d.scored {
		for _, c := range CoordOf(cell) {
			add(all, c)
		}
	}
	for _, s := range moved {
		for _, c := range CoordOf(s.Cell) {
			add(of, c)
			on[c.Axis]++
		}
	}
	least := 1.0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		share := float64(len(of[name])) / float64(len(all[name]))
		if on[name] == len(moved) && share < least {
			least, axis, ids = share, name, slices.Sorted(maps.Keys(of[name]))
		}
	}
	return axis, ids
}

// idOn returns the id of a cell on an axis, "" for none.
func idOn(axis, cell string) string {
	for _, c := range CoordOf(cell) {
		if c.Axis == axis {
			return c.ID
		}
	}
	return ""
}

// verdicts counts how many of some changes are worse and better.
func verdicts(id string, all int, of []*ScoreChange, items string) string {
	n := map[string]int{}
	for _, s := range of {
		n[s.Verdict()]++
	}
	first, second := worse, better
	if n[better] > n[worse] {
		first, second = better, worse
	}
	decided := n[worse] + n[better] + n[uncertain] + n[changed]
	var text string
	switch {
	case decided == 0 && id == "":
		text = fmt.Sprintf("%d of %s changed", len(of), count(all, "score"))
	case decided == 0:
		text = fmt.Sprintf("%s changed in %s", id, ofIts(len(of), all))
	case id == "":
		text = fmt.Sprintf("%s of %s got %s, %s got %s", none(n[first]), count(all, "score"), first,
			none(n[second]), second)
	default:
		text = fmt.Sprintf("%s is %s in %s, %s in %s", id, first, ofIts(n[first], all), second,
			none(n[second]))
	}
	if n[changed] > 0 {
		text += fmt.Sprintf(", other in %d that have no better direction", n[changed])
	}
	if n[untested] > 0 {
		text += fmt.Sprintf(", %d without an interval", n[untested])
	}
	switch {
	case n[tooFew] == len(of):
		text += fmt.Sprintf(", of fewer than %d %s, which confirms nothing", fewestItems, items)
	case n[tooFew] > 0:
		text += fmt.Sprintf(", %d of fewer than %d %s, which confirms nothing", n[tooFew], fewestItems, items)
	}
	return text
}

// explained says what the verdicts of changes are by, and how many there would be without any effect.
func explained(of []*ScoreChange, items string) string {
	tested, fewest := 0, math.MaxInt
	for _, s := range of {
		if v := s.Verdict(); v != untested && v != tooFew {
			tested, fewest = tested+1, min(fewest, s.Paired)
		}
	}
	if tested == 0 {
		return ""
	}
	why := "by chance fewer than 1"
	if n := math.Round(float64(tested) * (1 - interval.Confidence)); n > 0 {
		why = fmt.Sprintf("by chance about %g", n)
	}
	why += fmt.Sprintf(" of %d would", tested)
	if interval.Few(fewest, "") != "" {
		why = "of so few " + items + " it is too short"
	}
	return fmt.Sprintf(" (the paired %g %% interval excludes 0; %s)", 100*interval.Confidence, why)
}

func ofIts(n, all int) string {
	if n == 1 && all == 1 {
		return "its only score"
	}
	return fmt.Sprintf("%s of its %s", none(n), count(all, "score"))
}

func none(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
