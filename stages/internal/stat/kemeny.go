package stat

import (
	"cmp"
	"math/bits"
	"slices"
)

// KemenyExact is the largest number of methods for which [Kemeny] finds the best orders of all.
const KemenyExact = 14

// Kemeny returns the places of the methods, 1 for the first, in the orders of them that contradict the fewest
// comparisons (Kemeny 1959): the mean over all such orders if there are several. wins is that of [Wins]; a
// tie contradicts either order by half a comparison. For up to [KemenyExact] methods it is exact, by dynamic
// programming over the sets of methods placed first; for more, exact is false and the order is a local
// optimum: starting from [Borda]'s, no method can move elsewhere to contradict fewer.
func Kemeny(wins [][]float64) (places []float64, exact bool) {
	if len(wins) > KemenyExact {
		return kemenyLocal(wins), false
	}
	m := len(wins)
	all := 1<<m - 1
	// Of every set of methods placed first: the fewest contradictions among its own order, and how many
	// orders have so few. An added method contradicts the comparisons that it wins against the set.
	fewest, orders := make([]float64, all+1), make([]float64, all+1)
	orders[0] = 1
	added := func(set, p int) float64 {
		sum := fewest[set]
		for s := set; s != 0; s &= s - 1 {
			sum += wins[p][bits.TrailingZeros(uint(s))] // halves: exact
		}
		return sum
	}
	for set := 1; set <= all; set++ {
		for s := set; s != 0; s &= s - 1 {
			p := bits.TrailingZeros(uint(s))
			rest := set &^ (1 << p)
			switch c := added(rest, p); {
			case orders[set] == 0 || c < fewest[set]:
				fewest[set], orders[set] = c, orders[rest]
			case c == fewest[set]:
				orders[set] += orders[rest]
			}
		}
	}
	// Backwards: in how many of the best orders a set comes first, per order of the set itself.
	through := make([]float64, all+1)
	through[all] = 1
	places = make([]float64, m)
	for set := all; set > 0; set-- {
		if through[set] == 0 {
			continue
		}
		for s := set; s != 0; s &= s - 1 {
			p := bits.TrailingZeros(uint(s))
			rest := set &^ (1 << p)
			if added(rest, p) == fewest[set] {
				through[rest] += through[set]
				places[p] += float64(bits.OnesCount(uint(set))) * orders[rest] * through[set]
			}
		}
	}
	for p := range places {
		places[p] /= orders[all]
	}
	return places, true
}

// kemenyLocal moves single methods, first to last, until no move helps.
func kemenyLocal(wins [][]float64) []float64 {
	order := make([]int, len(wins))
	for p := range order {
		order[p] = p
	}
	share := Borda(wins)
	slices.SortStableFunc(order, func(p, q int) int { return cmp.Compare(share[q], share[p]) })
	for moved := true; moved; {
		moved = false
		for _, p := range slices.Clone(order) {
			from := slices.Index(order, p)
			order = slices.Delete(order, from, from+1)
			// The contradictions of p placed at 0, then the change as it passes each method.
			best, change, least := from, 0.0, 0.0
			changes := make([]float64, len(order)+1)
			for i, q := range order {
				change += wins[p][q] - wins[q][p]
				changes[i+1] = change
			}
			least = changes[from]
			for i, c := range changes {
				if c < least {
					best, least = i, c
				}
			}
			order = slices.Insert(order, best, p)
			moved = moved || best != from
		}
	}
	places := make([]float64, len(order))
	for i, p := range order {
		places[p] = float64(i + 1)
	}
	return places
}
