package scores

import (
	"math/rand/v2"

	"github.com/runexp/runexp/stages/interval"
)

// A Redraw estimates the means of several cases anew from resamples of the images of the second phase, the
// same for all cases: what it may have drawn instead. So the estimates vary about theirs as theirs do about
// the means of exact scores of all images; see [interval.Sample.Errors].
type Redraw struct {
	counts []int // by image
	cases  []redrawn
}

type redrawn struct {
	*Case
	Means
	errors     [][]float64 // by competitor and item; nil for those without
	images     []int       // by item: the number of its image; -1 for those not of the second phase
	resolution float64
}

// NewRedraw returns nil if all means are of exact scores of all images.
func NewRedraw(cases []*Case, means []Means) *Redraw {
	r, known, sampled := &Redraw{}, map[string]int{}, false
	for k, m := range cases {
		c := redrawn{Case: m, Means: means[k], resolution: resolution(means[k].samples)}
		for _, s := range c.samples {
			c.errors = append(c.errors, s.Errors())
			sampled = sampled || s.Errors() != nil
		}
		c.number(known)
		r.cases = append(r.cases, c)
	}
	if !sampled {
		return nil
	}
	r.counts = make([]int, len(known))
	return r
}

// number numbers the images of the second phase, by their names, as they are known.
func (c *redrawn) number(known map[string]int) {
	c.images = make([]int, len(c.items))
	for i, item := range c.items {
		c.images[i] = -1
		for _, s := range c.samples {
			if s.Phases == nil || s.Phases[i] != interval.Second {
				continue
			}
			name := string(c.first.names.at(item))
			n, ok := known[name]
			if !ok {
				n = len(known)
				known[name] = n
			}
			c.images[i] = n
		}
	}
}

// Qualities draws once, and returns by case and competitor the qualities of the means.
func (r *Redraw) Qualities(random *rand.Rand) [][]float64 {
	clear(r.counts)
	for range r.counts {
		r.counts[random.IntN(len(r.counts))]++
	}
	out := make([][]float64, len(r.cases))
	for k, c := range r.cases {
		means := make([]float64, len(c.Mean))
		copy(means, c.Mean)
		for p, errors := range c.errors {
			for i, e := range errors {
				if n := c.images[i]; n >= 0 {
					means[p] += float64(float64(r.counts[n]) * e)
				}
			}
		}
		out[k] = c.qualities(means, c.resolution)
	}
	return out
}
