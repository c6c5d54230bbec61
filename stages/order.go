package stages

import (
	"cmp"
	"slices"
)

// An Order maps an axis to its ids, in the order in which the experiment lists them.
type Order map[string][]string

// Compare orders two ids of an axis as the experiment lists them. Unlisted ids come last, sorted as text; on
// an unknown axis all ids are unlisted.
func (o Order) Compare(axis, a, b string) int {
	i, j := slices.Index(o[axis], a), slices.Index(o[axis], b)
	if i < 0 && j < 0 {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(uint(i), uint(j)) // -1 becomes the largest
}

// Names maps an axis to the experiment's names of some of its ids: their labels, or their families.
type Names map[string]map[string]string
