package mosaic

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A gridDraw decides which images meet in a grid.
//
// Classes lie in a deck, shuffled; a grid takes them from its top, so that every class has its turn before
// one has its second. A class whose images are used up leaves the game.
type gridDraw struct {
	pools  map[int64][]int // unused images of every class, in random order; taken from the end
	images int             // how many there were
	deck   []int64         // the next class is the first
	rng    *rand.Rand

	cells  int  // of a grid
	repeat bool // the last cell has the first one's class
}

// newGridDraw starts with all images; those of class -1 take no part.
func newGridDraw(p GridParams, classes []int64, rng *rand.Rand) *gridDraw {
	d := &gridDraw{pools: map[int64][]int{}, rng: rng, cells: p.N * p.N,
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

// classes returns the classes of the game, sorted.
func (d *gridDraw) classes() []int64 {
	var out []int64
	for c := range d.pools {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// needs says what a grid is made of.
func (d *gridDraw) needs() string {
	if d.repeat {
		return fmt.Sprintf("%d classes, one of them with two images", d.cells-1)
	}
	return fmt.Sprintf("%d classes", d.cells)
}

// next returns the images of the next grid, by cell; false if there aren't enough classes left.
func (d *gridDraw) next() ([]int, bool) {
	wanted := make([]int64, 0, d.cells)
	for k := range d.cells {
		if d.repeat && k == d.cells-1 {
			wanted = append(wanted, wanted[0])
			break
		}
		least := 1
		if d.repeat && k == 0 {
			least = 2
		}
		class, ok := d.turn(least, wanted)
		if !ok {
			return nil, false
		}
		wanted = append(wanted, class)
	}
	cells := make([]int, d.cells)
	for k, c := range wanted {
		pool := d.pools[c]
		cells[k] = pool[len(pool)-1]
		d.pools[c] = pool[:len(pool)-1]
	}
	return cells, true
}

// turn takes the first class off the deck that has at least so many images and isn't taken yet. A deck
// without one gets all classes that it lacks under it.
func (d *gridDraw) turn(least int, taken []int64) (int64, bool) {
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
