package plan

import (
	"cmp"
	"math/bits"
	"slices"
)

// A relation is a set of combinations of ids on some axes. A combination is encoded as one number, its
// code: its ids are the digits, the axes' sizes the bases.
type relation struct {
	axes    []*axisDecl // sorted by name
	weights []uint64    // by axis: the weight of its digit
	codes   []uint64    // ascending, each once
}

// maxCombinations bounds the combinations of a step's axes, existing or not.
const maxCombinations = 1 << 62

// weightsOf returns the weights of the axes' digits and the number of combinations. If that exceeds
// maxCombinations, it returns false and the weights are useless.
func weightsOf(axes []*axisDecl) (weights []uint64, size uint64, ok bool) {
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
	w, _, _ := weightsOf(axes)
	if !slices.IsSorted(codes) {
		slices.Sort(codes)
	}
	return relation{axes, w, slices.Compact(codes)}
}

// allowedIDs is the relation of an axis alone.
func allowedIDs(a *axisDecl) relation {
	var ids []uint64
	for i, allowed := range a.allowed {
		if allowed {
			ids = append(ids, uint64(i))
		}
	}
	return newRelation([]*axisDecl{a}, ids)
}

// digit returns the id of a code on the relation's k-th axis.
func (r *relation) digit(code uint64, k int) int32 {
	return int32(code / r.weights[k] % uint64(len(r.axes[k].ids)))
}

// read decodes a code into at.
func (r *relation) read(code uint64, at combination) {
	for k := range at.ids {
		at.ids[k] = r.digit(code, k)
	}
}

// onto returns, for each axis of r, its weight among other axes, 0 if it isn't one of them.
func (r *relation) onto(axes []*axisDecl) []uint64 {
	w, _, _ := weightsOf(axes)
	p := make([]uint64, len(r.axes))
	for k, a := range r.axes {
		if i := slices.Index(axes, a); i >= 0 {
			p[k] = w[i]
		}
	}
	return p
}

// project turns a code into a code of other axes: it drops the digits without a weight.
func (r *relation) project(code uint64, weights []uint64) (out uint64) {
	for k, w := range weights {
		if w != 0 {
			out += uint64(r.digit(code, k)) * w
		}
	}
	return out
}

// joined returns the combinations on the axes of both whose projections are in r and in s. It returns false
// if there are more than limit.
func (r *relation) joined(s *relation, limit int) (relation, bool) {
	axes := unionAxes(r.axes, s.axes)
	shared := withoutAxes(r.axes, withoutAxes(r.axes, s.axes))
	key, added := s.onto(shared), s.onto(axes)
	for k, w := range key {
		if w != 0 {
			added[k] = 0 // r has this digit already
		}
	}
	rest := map[uint64][]uint64{} // by the ids on common axes: the digits that s adds
	for _, c := range s.codes {
		k := s.project(c, key)
		rest[k] = append(rest[k], s.project(c, added))
	}
	key, base := r.onto(shared), r.onto(axes)
	codes := make([]uint64, 0, len(r.codes))
	for _, c := range r.codes {
		b := r.project(c, base)
		for _, add := range rest[r.project(c, key)] {
			codes = append(codes, b+add)
		}
		if len(codes) > limit {
			return relation{}, false
		}
	}
	return newRelation(axes, codes), true
}

// unionAxes returns the axes of all lists, each once, sorted by name.
func unionAxes(lists ...[]*axisDecl) []*axisDecl {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b *axisDecl) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(all)
}

// withoutAxes returns the axes of list that aren't in drop.
func withoutAxes(list, drop []*axisDecl) []*axisDecl {
	return slices.DeleteFunc(slices.Clone(list), func(a *axisDecl) bool { return slices.Contains(drop, a) })
}
