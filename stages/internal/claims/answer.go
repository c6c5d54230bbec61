package claims

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/stat"
)

// Words are the words for numbers in answers.
type Words struct {
	Verb   string // of an id with a larger number, as "react"
	More   string // "more to modified maps"; of other relations more or larger is replaced
	Name   string // of the number, as "the distance in percent"; "" if More names it
	Digits int    // decimals
	Tests  string // the things that a number with a threshold compares, as "pairs of cases"; "" for tests
	Paired string // the test of p, as "Wilcoxon's signed-rank test, paired by image"; "" without one
}

// meanDigits is the number of decimals of a mean.
const meanDigits = 4

// MeansOver returns the words for means over items, such as images.
func MeansOver(items string) Words {
	return Words{Verb: "have", More: "a larger mean", Digits: meanDigits,
		Paired: "Wilcoxon's signed-rank test, paired by " + english.Singular(items)}
}

// named is the number of tests that a sentence names before it counts the rest.
const named = 5

// Answer writes the outcomes as a paragraph; "" without claims. Its first sentence says in how many tests
// the first claims hold.
func (o *Outcomes) Answer(w Words) string {
	var s []string
	for rest := o.all; len(rest) > 0; {
		n := 1
		for n < len(rest) && alike(rest[0], rest[n]) {
			n++
		}
		s = append(s, o.sentence(w, rest[:n])...)
		rest = rest[n:]
	}
	if len(s) == 0 {
		return ""
	}
	return strings.Join(append(s, o.method(w)...), " ")
}

// alike reports whether one sentence can report two claims: of ids with the same relation and conditions.
func alike(a, b outcome) bool {
	same := func(c outcome) string {
		return fmt.Sprint(c.Relation, c.axis, c.threshold, c.Every, c.Where, c.direction)
	}
	return same(a) == same(b) && !a.threshold && len(a.tests) > 0 && len(b.tests) > 0
}

// verdicts are the results of the tests of similar claims.
type verdicts struct {
	subjects, rivals, absent []string // in bold, and the labels of ids that are absent
	failures, open           []string // tests that fail, and that are undefined
	tests, good              int
	sure, against            int  // confirmed, and with the opposite confirmed
	compared                 bool // by a test of significance
	closest                  *test
	of                       *outcome // the claim of the closest test
}

func (o *Outcomes) verdicts(w Words, claims []outcome) (v verdicts) {
	for i := range claims {
		c := &claims[i]
		v.subjects = add(v.subjects, o.bold(c, c.Subject))
		for _, id := range c.Rivals {
			v.rivals = add(v.rivals, o.bold(c, id))
		}
		for _, a := range c.absent {
			v.absent = add(v.absent, o.results.label(a.axis, a.id))
		}
		for k := range c.tests {
			o.judge(&v, w, c, &c.tests[k])
		}
	}
	return v
}

// judge counts a test.
func (o *Outcomes) judge(v *verdicts, w Words, c *outcome, t *test) {
	v.tests++
	v.compared = v.compared || !math.IsNaN(t.P)
	confirmed := t.P <= o.level()
	switch t.state {
	case failed:
		v.failures = append(v.failures, o.detail(w, c, t))
		if confirmed {
			v.against++
		}
	case undefined:
		v.open = append(v.open, o.place(c, t))
	default:
		v.good++
		if confirmed {
			v.sure++
		}
		if v.closest == nil || t.worse(v.closest) {
			v.closest, v.of = t, c
		}
	}
}

// sentence says in how many tests claims that are alike hold, and in which they don't.
func (o *Outcomes) sentence(w Words, claims []outcome) []string {
	first, v := claims[0], o.verdicts(w, claims)
	if v.tests == 0 {
		return []string{fmt.Sprintf("%q isn't tested here%s.", first.text, lacking(v.absent))}
	}
	says, not, by := o.statement(w, claims, &v)
	if v.tests == 1 {
		text := "It is undefined whether " + says
		switch t := &first.tests[0]; t.state {
		case held:
			text = says + by + o.numbers(w, &first, t)
		case failed:
			text = not + by + o.numbers(w, &first, t)
		}
		return o.rest([]string{text + "."}, nil, nil, v.absent)
	}
	tests := "tests"
	if first.threshold && w.Tests != "" {
		tests = w.Tests
	}
	text := fmt.Sprintf("%s in **%d of %d** %s%s", says, v.good, v.tests, tests, by)
	if v.compared && v.good > 0 && o.possible() {
		text += fmt.Sprintf("; %d %s confirmed", v.sure, english.Are(v.sure))
	}
	if v.against > 0 {
		text += fmt.Sprintf("; in %d the opposite is", v.against)
	}
	s := []string{text + "."}
	if len(v.failures) == 0 && v.closest != nil {
		s = append(s, "Closest: "+o.detail(w, v.of, v.closest)+".")
	}
	return o.rest(s, v.failures, v.open, v.absent)
}

// statement returns what claims that are alike say, the opposite, and by which number.
func (o *Outcomes) statement(w Words, claims []outcome, v *verdicts) (says, not, by string) {
	first := claims[0]
	where := o.where(first.Where)
	if first.threshold {
		side := map[Relation]string{Larger: "above ", Smaller: "below "}[first.Relation] + first.Rivals[0]
		subject := english.Upper(first.Subject)
		return subject + " is " + side + where, subject + " isn't " + side + where, ""
	}
	verb, whose := w.Verb, "their"
	if len(v.subjects) == 1 {
		verb, whose = singular(verb), "its"
	}
	rivals := v.rivals
	switch {
	case first.Every:
		rivals = []string{"every other " + first.axis}
	case len(claims) > 1:
		rivals = []string{whose + " rivals"}
	case len(rivals) > named:
		rivals = o.allBut(&first)
	}
	if w.Name != "" {
		by = ", by " + w.Name
	}
	subjects, more := english.And(v.subjects), w.more(first.Relation, first.direction)
	says = fmt.Sprintf("%s %s %s than %s%s", subjects, verb, more, english.And(rivals), where)
	not = fmt.Sprintf("%s %s %s %s than %s%s", subjects, negated(verb), w.Verb, more, english.Or(rivals),
		where)
	return says, not, by
}

// rest lists the tests that don't hold.
func (o *Outcomes) rest(s, failures, open, absent []string) []string {
	if len(failures) > 0 {
		s = append(s, "Not so: "+some(failures)+".")
	}
	if len(open) > 0 {
		s = append(s, "Undefined: "+some(open)+".")
	}
	if len(absent) > 0 {
		s = append(s, "Not tested here"+lacking(absent)+".")
	}
	return s
}

// method explains p, and whether there are enough images.
func (o *Outcomes) method(w Words) (s []string) {
	if o.unpaired() {
		s = append(s, "Where there is no p, the means are of different "+o.results.Unit+", and nothing "+
			"tests their difference.")
	}
	if o.tests == 0 || w.Paired == "" {
		return s
	}
	if !o.possible() {
		n, least := o.images(), stat.LeastPairs(o.least())
		return append(s, fmt.Sprintf("With %s no difference can be confirmed, however large: it takes at "+
			"least %d; the counts are of directions alone.", english.CountOf(n, o.results.Unit), least))
	}
	correction := "uncorrected"
	if o.results.Holm && o.tests > 1 {
		correction = fmt.Sprintf("corrected by Holm for %d tests", o.tests)
	}
	return append(s, fmt.Sprintf("p is of %s, %s; at most %g confirms.", w.Paired, correction, o.level()))
}

// unpaired reports whether some test compares the means of different images.
func (o *Outcomes) unpaired() bool {
	return slices.ContainsFunc(o.all, func(c outcome) bool {
		return slices.ContainsFunc(c.tests, func(t test) bool { return t.Unpaired })
	})
}

// possible reports whether any test has enough images to confirm a difference.
func (o *Outcomes) possible() bool { return o.images() >= stat.LeastPairs(o.least()) }

// least is the level of a single test.
func (o *Outcomes) least() float64 {
	if o.results.Holm {
		return o.level() / float64(max(1, o.tests))
	}
	return o.level()
}

func (o *Outcomes) level() float64 {
	if o.results.Level == 0 {
		return Level
	}
	return o.results.Level
}

// images is the largest number of images of a test.
func (o *Outcomes) images() (n int) {
	for _, c := range o.all {
		for _, t := range c.tests {
			if !math.IsNaN(t.P) {
				n = max(n, t.N)
			}
		}
	}
	return n
}

// place names a test: "mas in vit noise".
func (o *Outcomes) place(c *outcome, t *test) string {
	at := strings.Join(t.at, " ")
	switch {
	case c.threshold && at == "":
		return c.Subject
	case c.threshold:
		return at
	case at == "":
		return o.results.label(c.axis, c.Subject)
	}
	return o.results.label(c.axis, c.Subject) + " in " + at
}

// detail names a test with its numbers: "mas in vit noise (1.25; sic 1.50, p = 0.2)".
func (o *Outcomes) detail(w Words, c *outcome, t *test) string {
	text := fmt.Sprintf("%s (%.*f", o.place(c, t), w.Digits, t.X)
	if t.rival != "" {
		text += fmt.Sprintf("; %s %.*f", o.results.label(c.axis, t.rival), w.Digits, t.Y)
	}
	if !math.IsNaN(t.P) && o.possible() {
		text += ", " + pText(t.P)
	}
	return text + ")"
}

// numbers writes the numbers of the only test: ": 0.5 against 0.4 (p = 0.03)".
func (o *Outcomes) numbers(w Words, c *outcome, t *test) string {
	text := fmt.Sprintf(": %.*f", w.Digits, t.X)
	if t.rival != "" {
		text += fmt.Sprintf(" against %.*f", w.Digits, t.Y)
		if c.Every || len(c.Rivals) > 1 {
			text += " of " + o.results.label(c.axis, t.rival)
		}
	}
	if math.IsNaN(t.P) || !o.possible() {
		return text
	}
	return fmt.Sprintf("%s (%s, n = %d)", text, pText(t.P), t.N)
}

// allBut names many rivals of a claim: as all ids except a few, or by their number.
func (o *Outcomes) allBut(c *outcome) []string {
	k := slices.Index(o.results.Axes, c.axis)
	var others []string
	for _, ids := range o.results.IDs {
		if id := ids[k]; id != c.Subject && !slices.Contains(c.Rivals, id) {
			others = add(others, o.bold(c, id))
		}
	}
	switch {
	case len(others) == 0:
		return []string{"every other " + c.axis}
	case len(others) <= named:
		return []string{"every other " + c.axis + " but " + english.And(others)}
	}
	return []string{fmt.Sprintf("%d others", len(c.Rivals))}
}

func (o *Outcomes) bold(c *outcome, id string) string {
	return "**" + o.results.label(c.axis, id) + "**"
}

// more describes the larger or better side of a relation, and whether it is the good one.
func (w Words) more(r Relation, d stages.Direction) string {
	text := w.More
	switch r {
	case Better:
		return strings.Replace(text, "larger", "better", 1) // more of what is good is better
	case Smaller:
		text = strings.NewReplacer("larger", "smaller", "more", "less").Replace(text)
	}
	// Only means over images have several directions.
	if w.Paired == "" || d != stages.Higher && d != stages.Lower {
		return text
	}
	if (r == Larger) == (d == stages.Higher) {
		return text + " (better)"
	}
	return text + " (worse)"
}

// where writes conditions: " (method ig and cam; layer final)".
func (o *Outcomes) where(all []Condition) string {
	var s []string
	for _, w := range all {
		var ids []string
		for _, id := range w.IDs {
			ids = append(ids, o.results.label(w.Axis, id))
		}
		s = append(s, w.Axis+" "+english.And(ids))
	}
	if s == nil {
		return ""
	}
	return " (" + strings.Join(s, "; ") + ")"
}

func lacking(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ": no " + strings.Join(ids, ", no ")
}

func singular(verb string) string {
	if verb == "have" {
		return "has"
	}
	return verb + "s"
}

// negated returns the words before the plain form of a verb.
func negated(verb string) string {
	if verb == "has" || strings.HasSuffix(verb, "s") {
		return "doesn't"
	}
	return "don't"
}

func add(list []string, s string) []string {
	for _, t := range list {
		if t == s {
			return list
		}
	}
	return append(list, s)
}

func some(names []string) string {
	if len(names) <= named {
		return strings.Join(names, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(names[:named], "; "), len(names)-named)
}

func pText(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}
