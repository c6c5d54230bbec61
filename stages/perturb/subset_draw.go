package perturb

import (
	"math/rand/v2"

	"github.com/runexp/runexp/stages/internal/metric"
)

// samples returns how many subsets, or orders, are drawn of that many units.
func (p SubsetParams) samples(units int) int {
	if p.Samples == 0 {
		return max(200, 2*units)
	}
	return p.Samples
}

// rows returns how many subsets there are of an image with that many units.
func (p SubsetParams) rows(units int) int {
	n := p.samples(units)
	switch p.Draw {
	case "fixed":
		n *= len(p.sizes(units))
	case "shapley":
		if units < 2 {
			return 0
		}
		if p.Paired {
			n *= 2
		}
	case "single":
		n = units
	case "permutation":
		n *= units - 1
		if p.Paired {
			n *= 2
		}
	}
	return n * p.Repeats
}

// sizes returns the sizes of the subsets of a fixed size.
func (p SubsetParams) sizes(units int) []int {
	if len(p.Sizes) > 0 {
		return p.Sizes
	}
	var out []int
	for _, share := range p.Shares {
		out = append(out, max(1, int(float64(units)*share)))
	}
	return out
}

// subsets draws the subsets of an image with that many units.
func (p SubsetParams) subsets(r *rand.Rand, units int) metric.Subsets {
	d := drawer{r, metric.NewSubsets(p.rows(units), units), 0, p.Repeats, make([]int, units)}
	for k := range d.order {
		d.order[k] = k
	}
	switch p.Draw {
	case "fixed":
		for _, size := range p.sizes(units) {
			for range p.samples(units) {
				d.add(d.choose(size)...)
			}
		}
	case "bernoulli":
		for range p.samples(units) {
			d.add(d.each(p.P)...)
		}
	case "shapley":
		d.shapley(p.samples(units), p.Paired)
	case "single":
		for k := range units {
			d.add(k)
		}
	case "permutation":
		for range p.samples(units) {
			d.beginnings(d.choose(units))
			if p.Paired {
				for a, b := 0, units-1; a < b; a, b = a+1, b-1 {
					d.order[a], d.order[b] = d.order[b], d.order[a]
				}
				d.beginnings(d.order)
			}
		}
	}
	return d.sets
}

// A drawer adds one subset after the other.
type drawer struct {
	*rand.Rand
	sets    metric.Subsets
	next    int // the first row that isn't set
	repeats int // rows of a subset
	order   []int
}

// add adds a subset of these units.
func (d *drawer) add(units ...int) {
	for _, k := range units {
		d.sets.Add(d.next, k)
	}
	d.repeat()
}

// repeat ends a row, and copies it.
func (d *drawer) repeat() {
	for k := 1; k < d.repeats; k++ {
		d.sets.Copy(d.next+k, d.next)
	}
	d.next += d.repeats
}

// choose returns size of the units in random order: all choices are equally likely.
func (d *drawer) choose(size int) []int {
	for k := range size {
		j := k + d.IntN(len(d.order)-k)
		d.order[k], d.order[j] = d.order[j], d.order[k]
	}
	return d.order[:size]
}

// each returns the units of which each is drawn with probability p.
func (d *drawer) each(p float64) (units []int) {
	for k := range d.sets.Units {
		if d.Float64() < p {
			units = append(units, k)
		}
	}
	return units
}

// beginnings adds the proper beginnings of an order of all units.
func (d *drawer) beginnings(order []int) {
	for k := 1; k < len(order); k++ {
		d.add(order[:k]...)
	}
}

// shapley adds subsets of k of M units with a probability in proportion to 1/(k·(M−k)), which is the weight
// of the Shapley kernel times their number.
func (d *drawer) shapley(samples int, paired bool) {
	units := d.sets.Units
	if units < 2 {
		return
	}
	upTo := make([]float64, units) // the weight of sizes up to k
	for k := 1; k < units; k++ {
		upTo[k] = upTo[k-1] + 1/(float64(k)*float64(units-k))
	}
	for range samples {
		at, size := d.Float64()*upTo[units-1], 1
		for size < units-1 && upTo[size] <= at {
			size++
		}
		row := d.next
		d.add(d.choose(size)...)
		if paired {
			d.sets.Complement(d.next, row)
			d.repeat()
		}
	}
}
