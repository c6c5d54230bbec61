package mosaic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// A sampler draws the images of each grid.
//
// Classes are in a shuffled deck. A grid takes classes from its top, so that no class is drawn a second time
// before all have been drawn once. A class without unused images is removed.
type sampler struct {
	pools  map[int64][]int // unused images by class, in random order; taken from the end
	images int             // number of images at the start
	deck   []int64         // the next class comes first
	rng    *rand.Rand

	cells  int  // number of cells of a grid
	repeat bool // the last cell has the class of the first
}

// newSampler starts with all images except those of class -1.
func newSampler(p GridParams, classes []int64, rng *rand.Rand) *sampler {
	d := &sampler{pools: map[int64][]int{}, rng: rng, cells: p.N * p.N,
		repeat: p.Classes == "corners-repeat"}
	for i, c := range classes {
		if c >= 0 {
			d.pools[c] = append(d.pools[c], i)
			d.images++
		}
	}
	for _, c := range d.classes() {
		pool := d.pools[c]
		rng.Shuffle(len(pool), func(i, k int) { pool[i], pool[k] = pool[k], pool[i] })
	}
	return d
}

// classes returns the remaining classes, sorted.
func (d *sampler) classes() []int64 { return slices.Sorted(maps.Keys(d.pools)) }

// needs describes the images that a grid requires.
func (d *sampler) needs() string {
	if d.repeat {
		return fmt.Sprintf("%d classes, one of them with two images", d.cells-1)
	}
	return fmt.Sprintf("%d classes", d.cells)
}

// next returns the images of the next grid by cell, or false if too few classes remain.
func (d *sampler) next() ([]int, bool) {
	drawn := make([]int64, 0, d.cells)
	for k := range d.cells {
		if d.repeat && k == d.cells-1 {
			drawn = append(drawn, drawn[0])
			break
		}
		least := 1
		if d.repeat && k == 0 {
			least = 2
		}
		class, ok := d.turn(least, drawn)
		if !ok {
			return nil, false
		}
		drawn = append(drawn, class)
	}
	cells := make([]int, d.cells)
	for k, c := range drawn {
		pool := d.pools[c]
		cells[k] = pool[len(pool)-1]
		d.pools[c] = pool[:len(pool)-1]
	}
	return cells, true
}

// turn takes the first class from the deck that has at least least images and isn't in taken. If there is
// none it shuffles all classes not in the deck and adds them below, once.
func (d *sampler) turn(least int, taken []int64) (int64, bool) {
	for range 2 {
		d.deck = slices.DeleteFunc(d.deck, func(c int64) bool { return len(d.pools[c]) == 0 })
		at := slices.IndexFunc(d.deck,
			func(c int64) bool { return len(d.pools[c]) >= least && !slices.Contains(taken, c) })
		if at >= 0 {
			c := d.deck[at]
			d.deck = slices.Delete(d.deck, at, at+1)
			return c, true
		}
		fresh := d.classes()
		d.rng.Shuffle(len(fresh), func(i, k int) { fresh[i], fresh[k] = fresh[k], fresh[i] })
		fresh = slices.DeleteFunc(fresh, func(c int64) bool { return slices.Contains(d.deck, c) })
		d.deck = append(d.deck, fresh...)
	}
	return 0, false
}
