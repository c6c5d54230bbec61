package pipeline

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/stages"
)

// unhold begins the jobs of cells whose bytes aren't kept, once everything that
// the cells in the job read has finished, or as much of it as ever will before
// the job does. It returns whether it began one.
func (r *run) unhold(begin func(*job) bool) bool {
	for _, patient := range []bool{true, false} {
		if !patient && r.active+len(r.ready)+len(r.tasks) > 0 {
			return false
		}
		for _, n := range r.held {
			members, complete := r.fuse(n, patient)
			if !complete {
				continue
			}
			j := &job{}
			for _, m := range members {
				j.members = append(j.members, &member{node: m})
			}
			if !begin(j) {
				return false
			}
			r.held = slices.DeleteFunc(r.held, func(n *node) bool { return n.state == running })
			return true
		}
	}
	return false
}

// fuse returns the cells that are to execute together with first, whose bytes
// aren't kept: those that read them, or read the bytes of one that does and
// doesn't keep them either, item by item; and the held cells that these read too.
// complete is false while one of them still waits for a cell outside; such a cell
// is left out if patient is false.
func (r *run) fuse(first *node, patient bool) (members []*node, complete bool) {
	if first.Stage.Relation != stages.Each {
		return []*node{first}, true
	}
	after := map[*node]bool{} // needs what the job makes
	in := map[*node]bool{}
	var candidates []*node
	add := func(head *node) {
		in[head] = true
		members = append(members, head)
		for queue := []*node{head}; len(queue) > 0; queue = queue[1:] {
			for _, d := range queue[0].dependents {
				if !after[d] && !d.state.finished() {
					after[d] = true
					candidates = append(candidates, d)
					queue = append(queue, d)
				}
			}
		}
	}
	add(first)
	for i := 0; i < len(candidates); i++ { // add makes more
		n := candidates[i]
		if !alike(n, first) {
			continue
		}
		for _, from := range r.edges(n) {
			if !in[from] && !after[from] && alike(from, first) && slices.Contains(r.held, from) {
				add(from)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b *node) int { return cmp.Compare(a.Index, b.Index) })
	complete = true
	for _, n := range candidates {
		joins, waits := r.mayJoin(n, in, after)
		if !joins || !alike(n, first) || waits && !patient {
			continue
		}
		complete = complete && !waits
		in[n] = true
		members = append(members, n)
	}
	slices.SortFunc(members, func(a, b *node) int { return cmp.Compare(a.Index, b.Index) })
	return members, complete
}

// alike reports whether n takes the same items as first, one by one.
func alike(n, first *node) bool {
	return n.Stage.Relation == stages.Each && n.rootOf(0) == first.rootOf(0)
}

// mayJoin reports whether n reads bytes that only live in the job and nothing that
// comes after it, and whether it still waits for a cell elsewhere.
func (r *run) mayJoin(n *node, in, after map[*node]bool) (joins, waits bool) {
	if n.state >= running {
		return false, false
	}
	for _, from := range r.edges(n) {
		switch {
		case in[from]:
			joins = joins || !from.Step.Keep
		case from.state.ok():
		case from.state.finished() || after[from]:
			return false, false
		default:
			waits = true
		}
	}
	return joins, waits
}
