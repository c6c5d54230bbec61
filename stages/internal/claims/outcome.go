package claims

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/stat"
)

// Level is the largest p-value, corrected for the number of tests, that confirms the result of a test.
const Level = 0.05

// resolution is the distance within which numbers without scores of images are equal: correlations, α, κ
// and percentages.
const resolution = 1e-9

// Results are numbers by the ids of some axes. A repeated axis is the axis of two cases, whose number they
// have together; a condition on it holds for both.
type Results struct {
	Axes      []string
	IDs       [][]string
	Values    []float64                         // NaN where undefined
	Direction func(i int) stages.Direction      // of a number; nil: higher is better
	Label     func(axis, id string) string      // the name of an id; nil: the id
	Compare   func(i, k int) Comparison         // of two numbers; nil: of the values, without a test
	Against   func(i int, x float64) Comparison // of a number with a threshold; nil likewise
	Names     []string                          // of the number, in claims with a threshold
	Level     float64                           // that confirms; 0: [Level]
	Unit      string                            // units of a test: "images"
	Holm      bool                              // p-values are corrected for the number of tests
}

// A Comparison compares two numbers, which are equal or not as a whole: Compare accounts for rounding.
type Comparison struct {
	X, Y float64
	N    int     // images that both have
	P    float64 // two-sided, NaN without a test

	Unpaired bool // X and Y are of different images
}

// Add adds a number.
func (r *Results) Add(ids []string, value float64) {
	r.IDs, r.Values = append(r.IDs, ids), append(r.Values, value)
}

// A state is the result of a test.
type state int

const (
	held state = iota
	undefined
	failed
)

// A test is a claim in one combination of the other axes. Its comparison is the one with the rival by which
// it fails most, or holds least; its p-value is that of the whole test.
type test struct {
	Comparison
	state   state
	at      []string  // the ids of the other axes that distinguish tests
	rival   string    // "" for a threshold
	margin  float64   // positive if it holds
	met     bool      // there is a comparison
	holding []float64 // the p-values of comparisons that hold
	failing []float64 // and of the comparisons that don't
}

// An outcome is the result of a claim.
type outcome struct {
	Claim
	text      string // as it was written
	axis      string // of the ids; "" for a threshold
	threshold bool
	tests     []test
	absent    []absence        // ids in the claim that the results don't have
	direction stages.Direction // the better direction, if it is the same in all tests; else ""
}

// An absence is of an id on an axis.
type absence struct{ axis, id string }

// Outcomes are the results of all claims.
type Outcomes struct {
	results *Results
	all     []outcome
	tests   int // number of p-values
}

// Test tests all claims. Ids that the results don't have leave a claim without tests: an experiment may be
// run in parts, and [List.Known] has refused what it doesn't have.
func (r *Results) Test(l List) (*Outcomes, error) {
	o := &Outcomes{results: r}
	ids := map[string][]string{}
	for k, axis := range r.Axes {
		for _, at := range r.IDs {
			if !slices.Contains(ids[axis], at[k]) {
				ids[axis] = append(ids[axis], at[k])
			}
		}
	}
	for _, text := range l.Claims {
		c, err := Parse(text)
		if err != nil {
			return nil, stages.BadField(field, "%v", err)
		}
		found, err := r.test(c, ids)
		if err != nil {
			return nil, err
		}
		found.text = text
		o.all = append(o.all, found)
	}
	o.correct()
	return o, nil
}

// test tests one claim.
func (r *Results) test(c Claim, ids map[string][]string) (outcome, error) {
	o := outcome{Claim: c, axis: c.axis(ids)}
	limit, numeric := c.threshold()
	o.threshold = o.axis == "" && numeric && slices.Contains(r.Names, c.Subject)
	if o.axis == "" && !o.threshold {
		o.axis, o.threshold = c.nearestAxis(ids), false
		for _, id := range c.named() {
			if !slices.Contains(ids[o.axis], id) {
				o.absent = append(o.absent, absence{o.axis, id})
			}
		}
	}
	for _, w := range c.Where {
		if ids[w.Axis] == nil {
			return o, stages.BadField(field, "the claim %q has a condition on the axis %q, which isn't "+
				"collapsed: the axes are %s", c, w.Axis, strings.Join(slices.Sorted(maps.Keys(ids)), ", "))
		}
		for _, id := range w.IDs {
			if !slices.Contains(ids[w.Axis], id) {
				o.absent = append(o.absent, absence{w.Axis, id})
			}
		}
	}
	column := slices.Index(r.Axes, o.axis)
	apart := func(k int) bool { return k != column && len(ids[r.Axes[k]]) > 1 }
	directions := map[stages.Direction]bool{}
	for i, at := range r.IDs {
		if !r.meets(c.Where, at) || column >= 0 && at[column] != c.Subject {
			continue
		}
		t := test{at: r.selected(at, apart)}
		if o.threshold {
			t.add(c, r.direction(i), r.against(i, limit), "")
		} else if n := r.rivals(&t, c, i, column); n == 0 {
			continue
		}
		t.settle()
		directions[r.direction(i)] = true
		o.tests = append(o.tests, t)
	}
	if len(directions) == 1 {
		for o.direction = range directions {
		}
	}
	return o, nil
}

// rivals adds the rivals of a number to its test, and returns how many there are.
func (r *Results) rivals(t *test, c Claim, i, column int) (n int) {
	for k, other := range r.IDs {
		id := other[column]
		if k == i || !c.Every && !slices.Contains(c.Rivals, id) || !equalBut(column, r.IDs[i], other) {
			continue
		}
		n++
		t.add(c, r.direction(i), r.compare(i, k), id)
	}
	return n
}

// add adds a comparison. A test fails if one comparison fails, and is undefined if none fails and one is
// undefined.
func (t *test) add(claim Claim, d stages.Direction, c Comparison, rival string) {
	if claim.Relation == Equal {
		c.P = math.NaN() // a test of a difference doesn't test equality
	}
	margin, now := claim.margin(d, c.X, c.Y), failed
	switch {
	case math.IsNaN(margin):
		now = undefined
	case margin > 0:
		now, t.holding = held, append(t.holding, c.P)
	default:
		t.failing = append(t.failing, c.P)
	}
	// The worst state counts, and in it the least margin.
	if !t.met || now > t.state || now == t.state && margin < t.margin {
		t.Comparison, t.rival, t.state, t.margin, t.met = c, rival, now, margin, true
	}
}

// settle computes the test's p-value. If a test holds, so do all comparisons: it is their largest p-value,
// and undefined if one has none. If a test fails, one failing comparison suffices: it is the smallest
// p-value of the failing ones, times the number of all (Bonferroni).
func (t *test) settle() {
	t.P = math.NaN()
	switch t.state {
	case held:
		t.P = slices.Max(t.holding) // NaN if one is
	case failed:
		for _, p := range t.failing {
			if !math.IsNaN(p) && !(t.P <= p) {
				t.P = p
			}
		}
		t.P = min(1, t.P*float64(len(t.holding)+len(t.failing)))
	}
}

// worse reports whether t holds less than u, or fails more: by p if both have one, since the numbers of two
// tests may have different units.
func (t *test) worse(u *test) bool {
	switch {
	case t.state != u.state:
		return t.state > u.state
	case math.IsNaN(t.P) || math.IsNaN(u.P):
		return t.margin < u.margin-resolution
	case t.state == failed:
		return t.P < u.P
	}
	return t.P > u.P
}

// meets reports whether a number's ids meet conditions.
func (r *Results) meets(where []Condition, at []string) bool {
	for _, w := range where {
		for k, axis := range r.Axes {
			if axis == w.Axis && !slices.Contains(w.IDs, at[k]) {
				return false
			}
		}
	}
	return true
}

func (r *Results) direction(i int) stages.Direction {
	if r.Direction == nil {
		return stages.Higher
	}
	return r.Direction(i)
}

func (r *Results) compare(i, k int) Comparison {
	if r.Compare != nil {
		return r.Compare(i, k)
	}
	return plain(r.Values[i], r.Values[k])
}

func (r *Results) against(i int, x float64) Comparison {
	if r.Against != nil {
		return r.Against(i, x)
	}
	return plain(r.Values[i], x)
}

// plain compares numbers without scores of images.
func plain(x, y float64) Comparison {
	if math.Abs(x-y) <= resolution {
		x = y
	}
	return Comparison{X: x, Y: y, P: math.NaN()}
}

func (r *Results) label(axis, id string) string {
	if r.Label == nil {
		return id
	}
	return r.Label(axis, id)
}

// correct corrects the p-values by Holm.
func (o *Outcomes) correct() {
	var p []float64
	for _, c := range o.all {
		for _, t := range c.tests {
			if p = append(p, t.P); !math.IsNaN(t.P) {
				o.tests++
			}
		}
	}
	if !o.results.Holm {
		return
	}
	p = stat.Holm(p)
	for _, c := range o.all {
		for k := range c.tests {
			c.tests[k].P, p = p[0], p[1:]
		}
	}
}

// nearestAxis returns the axis that has the most of the ids next to the relation.
func (c Claim) nearestAxis(ids map[string][]string) (found string) {
	most := -1
	for _, axis := range slices.Sorted(maps.Keys(ids)) {
		n := 0
		for _, id := range c.named() {
			if slices.Contains(ids[axis], id) {
				n++
			}
		}
		if n > most {
			found, most = axis, n
		}
	}
	return found
}

// equalBut reports whether ids are equal at all places except one.
func equalBut(place int, a, b []string) bool {
	for k := range a {
		if k != place && a[k] != b[k] {
			return false
		}
	}
	return true
}

// selected returns the names of some ids.
func (r *Results) selected(ids []string, take func(k int) bool) (out []string) {
	for k, id := range ids {
		if take(k) {
			out = append(out, r.label(r.Axes[k], id))
		}
	}
	return out
}
