package scores

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestTwins finds planted twins, and nothing else, in random boards: of continuous scores and of counts, of
// few cases and of many. A twin's score jumps on one image in forty.
func TestTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	planted, found := 0, 0
	for board := range 400 {
		cases, methods, images := 1+r.IntN(6), 2+r.IntN(7), 12+r.IntN(60)
		counts := r.IntN(2) == 0
		twin := r.IntN(2) == 0
		c := Contest{}
		for p := range methods {
			c.Competitors = append(c.Competitors, fmt.Sprint("m", p))
		}
		if twin {
			c.Competitors = append(c.Competitors, "twin")
			planted++
		}
		for range cases {
			m := Case{Measure: stages.Measure{Direction: stages.Higher}, Comparable: true}
			shared := &names{ends: make([]uint32, images)}
			for range c.Competitors {
				m.Cells = append(m.Cells, &Cell{Measure: m.Measure, Scores: &List{names: shared}})
			}
			for i := range images {
				level := r.NormFloat64()
				for p := range methods {
					x := level + float64(p%3)/4 + r.NormFloat64()
					if counts {
						x = float64(r.IntN(11))
					}
					m.Cells[p].Scores.Values = append(m.Cells[p].Scores.Values, x)
				}
				if twin {
					x := m.Cells[0].Scores.Values[i]
					if i%40 == 39 {
						x++
					}
					m.Cells[methods].Scores.Values = append(m.Cells[methods].Scores.Values, x)
				}
			}
			c.Cases = append(c.Cases, m)
		}
		got := c.Twins()
		switch {
		case twin && (len(got) != 1 || !slices.Equal(got[0].Competitors, []int{0, methods})):
			t.Errorf("board %d: %+v, planted 0 and %d", board, got, methods)
		case !twin && len(got) > 0:
			t.Errorf("board %d: %+v, nothing was planted", board, got)
		case twin:
			found++
			if got[0].Cases != cases {
				t.Errorf("board %d: in %d cases of %d", board, got[0].Cases, cases)
			}
		}
	}
	if found != planted || planted < 100 {
		t.Errorf("found %d of %d", found, planted)
	}
}

func TestTwinsSentence(t *testing.T) {
	name := func(p int) string { return []string{"lrp", "ixg", "grad"}[p] }
	for _, c := range []struct {
		twins []Twins
		want  string
	}{
		{nil, ""},
		{[]Twins{{[]int{0, 1}, 158, 160, 10}}, "**lrp** and **ixg** have equal scores on 158 of 160 " +
			"images in 10 " +
			"cases: they count as two competitors, and every other one meets the same rival twice."},
		{[]Twins{{[]int{0, 1, 2}, 8, 8, 1}}, "**lrp**, **ixg** and **grad** have equal scores on all 8 " +
			"images: they " +
			"count as 3 competitors, and every other one meets the same rival 3 times."},
	} {
		if got := Sentence(c.twins, "images", name); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestHitsAreNoTwins: two methods that both hit the object on nearly every image aren't one.
func TestHitsAreNoTwins(t *testing.T) {
	c := Contest{Competitors: []string{"a", "b", "c"}}
	m := Case{Measure: stages.Measure{Direction: stages.Higher}, Comparable: true}
	shared := &names{ends: make([]uint32, 60)}
	for p := range c.Competitors {
		l := &List{names: shared}
		for i := range 60 {
			hit := 1.0
			if p < 2 && i == p || p == 2 && i%2 == 0 {
				hit = 0
			}
			l.Values = append(l.Values, hit)
		}
		m.Cells = append(m.Cells, &Cell{Measure: m.Measure, Scores: l})
	}
	c.Cases = []Case{m}
	if got := c.Twins(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
