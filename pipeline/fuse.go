package pipeline

import (
	"slices"

	"github.com/runexp/runexp/stages"
)

// unhold begins the jobs of cells whose bytes aren't kept, once everything that
// the cells in the job read has finished. It returns whether it began one.
func (r *run) unhold(begin func(*job) bool) bool {
	for i, n := range r.held {
		members, complete := r.fuse(n)
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
		r.held = slices.Delete(r.held, i, i+1)
		return true
	}
	return false
}

// fuse returns the cells that are to execute together with first, whose bytes
// aren't kept: those that read them, or read the bytes of one that does and
// doesn't keep them either, item by item. complete is false while one of them
// still waits for a cell outside.
func (r *run) fuse(first *node) (members []*node, complete bool) {
	members, complete = []*node{first}, true
	if first.Stage.Relation != stages.Each {
		return members, true
	}
	in := map[*node]bool{first: true}
	queue := slices.Clone(first.dependents)
	for len(queue) > 0 {
		slices.SortFunc(queue, func(a, b *node) int { return a.Index - b.Index })
		n := queue[0]
		queue = slices.DeleteFunc(queue, func(m *node) bool { return m == n })
		joins, waits := r.mayJoin(n, first, in)
		if !joins {
			continue
		}
		complete = complete && !waits
		in[n] = true
		members = append(members, n)
		if !n.Step.Keep {
			queue = append(queue, n.dependents...)
		}
	}
	return members, complete
}

// mayJoin reports whether n can execute in the job of first, and whether it still
// waits for a cell that isn't in the job.
func (r *run) mayJoin(n, first *node, in map[*node]bool) (joins, waits bool) {
	if n.state >= running || n.Stage.Relation != stages.Each || r.root(n, 0) != r.root(first, 0) {
		return false, false
	}
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			from := r.nodes[e.From.Index]
			switch {
			case in[from] || from.state.ok():
			case from.state.finished() || r.follows(from, first):
				return false, false
			default:
				waits = true
			}
		}
	}
	return true, waits
}

// follows reports whether n needs the results of first.
func (r *run) follows(n, first *node) bool {
	if n.Index <= first.Index {
		return n == first
	}
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			if from := r.nodes[e.From.Index]; !from.state.finished() && r.follows(from, first) {
				return true
			}
		}
	}
	return false
}
