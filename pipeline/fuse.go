package pipeline

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// nextJob takes the cells of the next job from the queues. It returns nil if there is none yet.
func (r *run) nextJob() *job {
	nodes := r.unhold(true)
	for i := 0; nodes == nil && i < len(r.ready); i++ {
		nodes = r.sharers(r.ready[i])
	}
	if nodes == nil && r.active+len(r.tasks) == 0 {
		nodes = r.unhold(false)
	}
	if nodes == nil {
		return nil
	}
	j := newJob(nodes)
	j.onProbation = r.compares() && j.device()
	begun := func(n *node) bool { return n.state == running }
	r.held = slices.DeleteFunc(r.held, begun)
	if len(nodes) == 1 && len(r.ready) > 0 && begun(r.ready[0]) { // as most are, of perhaps many thousands
		r.ready = r.ready[1:]
	} else {
		r.ready = slices.DeleteFunc(r.ready, begun)
	}
	return j
}

// sharers returns a ready cell and the other ready ones that may share its work. It returns nil while another
// waits only for its program, so that what is shared does not depend on when programs are compiled.
func (r *run) sharers(first *node) []*node {
	if first.Stage.Shared == nil {
		return []*node{first}
	}
	may := func(n *node) bool { return mayShare(n.Cell, first.Cell) }
	if slices.ContainsFunc(r.unknown, may) || slices.ContainsFunc(r.compiles, may) {
		return nil
	}
	var nodes []*node
	for _, n := range slices.Backward(r.ready) { // in the order of the plan
		if n == first || mayShare(n.Cell, first.Cell) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// mayShare reports whether two cells are of stages of one group, and read the same outputs.
func mayShare(a, b *plan.Cell) bool {
	sameEdge := func(e, f plan.Edge) bool { return e.From == f.From && e.Port == f.Port }
	sameInput := func(x, y plan.Input) bool { return slices.EqualFunc(x.Edges, y.Edges, sameEdge) }
	shared := a.Stage.Shared
	return shared != nil && shared == b.Stage.Shared && slices.EqualFunc(a.Inputs, b.Inputs, sameInput)
}

// unhold takes the cells of a job of which one isn't kept, once everything that they read has finished or, if
// patient is false, as much of it as ever will before the job does.
func (r *run) unhold(patient bool) []*node {
	waiting := map[*node]bool{} // they are in a job that isn't complete
	for _, n := range r.held {
		if waiting[n] {
			continue
		}
		nodes, complete := r.fuse(n, patient)
		if complete {
			return nodes
		}
		for _, n := range nodes {
			waiting[n] = true
		}
	}
	return nil
}

// fuse returns the cells that are to execute together with first, whose bytes aren't kept: those that read
// them, or read the bytes of one that does and doesn't keep them either, item by item; and the held cells
// that these read too, be it through others whose bytes aren't kept. complete is false while one of them
// still waits for a cell outside; such a cell is left out if patient is false.
func (r *run) fuse(first *node, patient bool) (nodes []*node, complete bool) {
	if first.Stage.Relation != stages.Each {
		return []*node{first}, true
	}
	after := map[*node]bool{} // needs what the job makes
	in := map[*node]bool{}
	var candidates []*node
	add := func(head *node) {
		in[head] = true
		nodes = append(nodes, head)
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
	pulled := map[*node]bool{}
	for i := 0; i < len(candidates); i++ { // add makes more
		if !alike(candidates[i], first) {
			continue
		}
		for above := []*node{candidates[i]}; len(above) > 0; above = above[1:] {
			for _, from := range r.edges(above[0]) {
				switch {
				case in[from] || after[from] || pulled[from] || from.Step.Keep || !alike(from, first):
				case from.held():
					add(from)
				case from.state == waiting:
					above = append(above, from)
				}
				pulled[from] = true
			}
		}
	}
	byIndex := func(a, b *node) int { return cmp.Compare(a.Index, b.Index) }
	slices.SortFunc(candidates, byIndex)
	complete = true
	for _, n := range candidates {
		joins, waits := r.mayJoin(n, in, after)
		if !joins || !alike(n, first) || waits && !patient {
			continue
		}
		complete = complete && !waits
		in[n] = true
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, byIndex)
	return r.depthFirst(nodes, in), complete
}

// depthFirst orders the cells of a job so that few of their bytes live at a time: each comes right after what
// it needs, and what is kept or read no more comes as early as it can.
func (r *run) depthFirst(nodes []*node, in map[*node]bool) []*node {
	out := make([]*node, 0, len(nodes))
	lacks := map[*node]int{} // edges from cells of the job that aren't placed
	reads := func(n *node) bool { return in[n] }
	ends := func(n *node) bool { return n.Step.Keep || !slices.ContainsFunc(n.dependents, reads) }
	for _, n := range nodes {
		for _, from := range r.edges(n) {
			if in[from] {
				lacks[n]++
			}
		}
	}
	placed := map[*node]bool{}
	var place func(n *node)
	place = func(n *node) {
		if placed[n] {
			return
		}
		placed[n] = true
		for _, from := range r.edges(n) {
			if in[from] {
				place(from)
			}
		}
		out = append(out, n)
		for _, d := range n.dependents {
			if lacks[d]--; in[d] && lacks[d] == 0 && ends(d) {
				place(d)
			}
		}
	}
	for _, n := range nodes {
		if ends(n) {
			place(n)
		}
	}
	return out
}

// alike reports whether n takes the same items as first, one by one.
func alike(n, first *node) bool {
	return n.Stage.Relation == stages.Each && n.rootOf(0) == first.rootOf(0)
}

// mayJoin reports whether n reads bytes that only live in the job and nothing that comes after it, and
// whether it still waits for a cell elsewhere.
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
