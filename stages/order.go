package stages

import (
	"cmp"
	"slices"
)

// An Order holds, by axis, ids in the order in which an experiment writes them.
type Order map[string][]string

// Compare orders two ids of an axis as the experiment writes them. Ids that it doesn't write come last,
// sorted as text; so are all ids of an unknown axis.
func (o Order) Compare(axis, a, b string) int {
	i, j := slices.Index(o[axis], a), slices.Index(o[axis], b)
	if i < 0 && j < 0 {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(uint(i), uint(j)) // -1 becomes the largest
}
