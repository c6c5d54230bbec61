package scores

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/stat"
)

// The fraction of two competitors' scores that must be equal for them to count as the same competitor.
const (
	twinShare  = 0.95 // of the images
	leastTwins = 8    // images, and values of a case
	// twinRange is the fraction of the range of a case's scores, in millions of [stat.Resolution], within
	// which two are equal: another order of a method's arithmetic may change a score by that much.
	twinRange = 1e6
)

// Twins are competitors with equal scores, such as one method under two names.
type Twins struct {
	Competitors []int
	Equal       int // images on which neighbours in the list have equal scores, over all cases
	Images      int // number of these images
	Cases       int
}

// Twins finds competitors whose scores are equal on at least 95 of 100 images of the cases in which both
// have some: within a thousandth of the range of the middle nine tenths of the case's scores. An image on
// which all competitors have equal scores distinguishes nothing and isn't counted; at least 8 others are
// needed. A case with many scores but fewer than 8 values, such as hits, isn't counted either: equal scores
// are no surprise there. The remaining images allow for scores that jump if rounding swaps two pixels.
func (c *Contest) Twins() (all []Twins) {
	var cases []telling
	images := 0
	for i := range c.Cases {
		t := c.Cases[i].telling()
		cases = append(cases, t)
		images += len(t.items)
	}
	group := make([]int, len(c.Competitors)) // 1 and more for twins
	for a := range c.Competitors {
		for b := range a {
			t := c.twins(b, a, cases, images)
			switch {
			case t.Images < leastTwins || float64(t.Equal) < twinShare*float64(t.Images):
			case group[b] == 0 && group[a] == 0:
				all = append(all, t)
				group[a], group[b] = len(all), len(all)
			case group[a] == 0:
				g := &all[group[b]-1]
				g.Competitors = append(g.Competitors, a)
				g.Equal, g.Images = min(g.Equal, t.Equal), max(g.Images, t.Images)
				g.Cases = max(g.Cases, t.Cases)
				group[a] = group[b]
			}
		}
	}
	return all
}

// A telling holds the images of a case that distinguish competitors.
type telling struct {
	list   *List // whose items they are
	items  []int
	within float64 // the distance of equal scores
}

func (m *Case) telling() (t telling) {
	var lists []*List
	var values [][]float64
	for _, cell := range m.Cells {
		if cell != nil {
			lists, values = append(lists, cell.Scores), append(values, cell.Scores.Values)
		}
	}
	if len(lists) < 2 {
		return t
	}
	all, distinct := slices.Concat(values...), map[float64]bool{}
	for _, x := range all {
		if !math.IsNaN(x) && len(distinct) < leastTwins {
			distinct[x] = true
		}
	}
	if n := len(distinct); n < leastTwins && 4*n <= len(all) {
		return t
	}
	t.list, t.within = lists[0], twinRange*stat.Resolution(values...)
	for i := range t.list.Values {
		low, high := math.Inf(1), math.Inf(-1)
		for _, l := range lists {
			if x, ok := l.Of(t.list, i); ok && !math.IsNaN(x) {
				low, high = min(low, x), max(high, x)
			}
		}
		if len(lists) == 2 || high-low > t.within {
			t.items = append(t.items, i)
		}
	}
	return t
}

// twins compares two competitors, and stops when they can't be twins.
func (c *Contest) twins(a, b int, cases []telling, images int) Twins {
	t := Twins{Competitors: []int{a, b}}
	for i := range c.Cases {
		x, y := c.Cases[i].Cells[a], c.Cases[i].Cells[b]
		if x == nil || y == nil || float64(t.Images-t.Equal) > (1-twinShare)*float64(images) {
			continue
		}
		before := t.Images
		for _, k := range cases[i].items {
			u, ok := x.Scores.Of(cases[i].list, k)
			v, both := y.Scores.Of(cases[i].list, k)
			if !ok || !both || math.IsNaN(u) || math.IsNaN(v) {
				continue
			}
			t.Images++
			if math.Abs(u-v) <= cases[i].within {
				t.Equal++
			}
		}
		if t.Images > before {
			t.Cases++
		}
	}
	return t
}

// Sentence names twins by their labels, "" without any. items are what has scores.
func Sentence(all []Twins, items string, name func(competitor int) string) string {
	var s []string
	for _, t := range all {
		var names []string
		for _, p := range t.Competitors {
			names = append(names, "**"+name(p)+"**")
		}
		last := len(names) - 1
		where := fmt.Sprintf("on all %d %s", t.Images, items)
		if t.Equal < t.Images {
			where = fmt.Sprintf("on %d of %d %s", t.Equal, t.Images, items)
		}
		if t.Cases > 1 {
			where += fmt.Sprintf(" in %d cases", t.Cases)
		}
		number, again := "two", "twice"
		if last > 1 {
			number, again = fmt.Sprint(last+1), fmt.Sprintf("%d times", last+1)
		}
		s = append(s, fmt.Sprintf("%s and %s have equal scores %s: they count as %s competitors, and every "+
			"other one meets the same rival %s.", strings.Join(names[:last], ", "), names[last], where,
			number, again))
	}
	return strings.Join(s, " ")
}
