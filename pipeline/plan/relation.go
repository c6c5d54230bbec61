package plan

import (
	"cmp"
	"math/bits"
	"slices"
)

// A relation is a set of combinations of ids on some axes. A combination is one
// number: its ids are the digits, the axes' sizes the bases.
type relation struct {
	axes    []*axisDecl // sorted by name
	strides []uint64    // by axis: the weight of its digit
	codes   []uint64    // ascending, each once
}

// maxCombinations bounds the combinations of a step's axes, existing or not.
const maxCombinations = 1 << 62

// strides returns the weights of the axes' digits and the number of combinations.
// When that is more than maxCombinations, it returns false and useless weights.
func strides(axes []*axisDecl) (weights []uint64, size uint64, ok bool) {
	weights, size, ok = make([]uint64, len(axes)), 1, true
	for i := len(axes) - 1; i >= 0; i-- {
		weights[i] = size
		hi, lo := bits.Mul64(size, uint64(max(len(axes[i].ids), 1)))
		size, ok = lo, ok && hi == 0 && lo <= maxCombinations
	}
	return weights, size, ok
}

// newRelation takes ownership of codes, in any order.
func newRelation(axes []*axisDecl, codes []uint64) relation {
	w, _, _ := strides(axes)
	if !slices.IsSorted(codes) {
		slices.Sort(codes)
	}
	return relation{axes, w, slices.Compact(codes)}
}

// oneCombination is the relation on no axes that holds.
func oneCombination() relation { return relation{codes: []uint64{0}} }

// digit returns the id of a code on the relation's k-th axis.
func (r *relation) digit(code uint64, k int) int32 {
	return int32(code / r.strides[k] % uint64(len(r.axes[k].ids)))
}

// A projection turns codes over some axes into codes over others: it drops the
// axes that the others lack, and leaves those that they add at 0.
type projection struct {
	axis  []int    // of the relation
	scale []uint64 // weights in the result
}

func (r *relation) projection(axes []*axisDecl) projection {
	w, _, _ := strides(axes)
	var p projection
	for i, a := range axes {
		if k := slices.Index(r.axes, a); k >= 0 {
			p.axis = append(p.axis, k)
			p.scale = append(p.scale, w[i])
		}
	}
	return p
}

func (r *relation) project(code uint64, p projection) (out uint64) {
	for i, k := range p.axis {
		out += uint64(r.digit(code, k)) * p.scale[i]
	}
	return out
}

// joined returns the combinations on the axes of both whose parts are in r and in
// s. It returns false when there are more than limit.
func (r *relation) joined(s *relation, limit int) (relation, bool) {
	axes := unionAxes(r.axes, s.axes)
	var shared, added []*axisDecl
	for _, a := range s.axes {
		if slices.Contains(r.axes, a) {
			shared = append(shared, a)
		} else {
			added = append(added, a)
		}
	}
	type entry struct{ key, add uint64 }
	entries := make([]entry, len(s.codes))
	// The added digits, at their weights among all axes.
	w, _, _ := strides(axes)
	var extra projection
	for _, a := range added {
		extra.axis = append(extra.axis, slices.Index(s.axes, a))
		extra.scale = append(extra.scale, w[slices.Index(axes, a)])
	}
	key := s.projection(shared)
	for i, c := range s.codes {
		entries[i] = entry{s.project(c, key), s.project(c, extra)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.add, b.add)
	})
	key, base := r.projection(shared), r.projection(axes)
	codes := make([]uint64, 0, len(r.codes))
	for _, c := range r.codes {
		k, b := r.project(c, key), r.project(c, base)
		i, _ := slices.BinarySearchFunc(entries, k, func(e entry, k uint64) int { return cmp.Compare(e.key, k) })
		for ; i < len(entries) && entries[i].key == k; i++ {
			codes = append(codes, b+entries[i].add)
		}
		if len(codes) > limit {
			return relation{}, false
		}
	}
	return newRelation(axes, codes), true
}

// unionAxes returns the axes of all lists, each once, sorted by name.
func unionAxes(lists ...[]*axisDecl) []*axisDecl {
	var out []*axisDecl
	for _, list := range lists {
		for _, a := range list {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(a, b *axisDecl) int { return cmp.Compare(a.name, b.name) })
	return out
}

// withoutAxes returns the axes of list that aren't in drop.
func withoutAxes(list, drop []*axisDecl) []*axisDecl {
	var out []*axisDecl
	for _, a := range list {
		if !slices.Contains(drop, a) {
			out = append(out, a)
		}
	}
	return out
}
