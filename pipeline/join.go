package pipeline

import (
	"fmt"

	"github.com/runexp/runexp/stages"
)

// itemPorts returns the names of the items behind every live edge to a port of items.
func (r *resolver) itemPorts(n *node) (lists []*idList, err error) {
	for p := range n.Stage.Inputs {
		if !n.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range r.live(n, p) {
			l, err := r.idsOf(r.nodes[e.From.Index], e.Port)
			if err != nil {
				return nil, err
			}
			lists = append(lists, l)
		}
	}
	return lists, nil
}

// A join lists, for every item of a call, the positions of its members on another port. nil stands for one by
// one, in order.
type join struct {
	members []int32
	ends    []int32 // by call: where its members end
}

func (j *join) of(call int) []int32 {
	first := int32(0)
	if call > 0 {
		first = j.ends[call-1]
	}
	return j.members[first:j.ends[call]]
}

// joins returns, by input port and live edge, how the items there belong to n's items.
func (r *resolver) joins(n *node) ([][]*join, error) {
	out := make([][]*join, len(n.Inputs))
	var calls *idList
	for p := range n.Inputs {
		if !n.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range r.live(n, p) {
			from := r.nodes[e.From.Index]
			if n.Stage.Relation != stages.Group && from.rootOf(e.Port) == n.calls {
				out[p] = append(out[p], nil)
				continue
			}
			var err error
			if calls == nil {
				if calls, err = r.callIDs(n); err != nil {
					return nil, err
				}
			}
			items, err := r.idsOf(from, e.Port)
			if err != nil {
				return nil, err
			}
			j := makeJoin(n.Stage.Relation, calls, items)
			if call := j.lacking(); call >= 0 && (len(e.Coord) == 0 || !n.Step.Drop) {
				return nil, lacksItem(inputName(n, p, e), calls.ids[call])
			}
			out[p] = append(out[p], j)
		}
	}
	return out, nil
}

func lacksItem(input, id string) error {
	return fmt.Errorf("input %q has nothing for the item %q", input, id)
}

func makeJoin(relation stages.Relation, calls, items *idList) *join {
	j := &join{ends: make([]int32, calls.len())}
	if relation == stages.Group {
		j.group(calls, items)
	} else {
		j.each(calls, items)
	}
	return j
}

// lacking returns the first call without members, or -1.
func (j *join) lacking() int {
	for i := range j.ends {
		if len(j.of(i)) == 0 {
			return i
		}
	}
	return -1
}

// group gives every call the items that have it as their origin.
func (j *join) group(calls, items *idList) {
	callOf := make([]int32, items.len())
	for i := range callOf {
		k := calls.find(items.origin(i))
		if callOf[i] = int32(k); k >= 0 {
			j.ends[k]++ // how many they are, for now
		}
	}
	next := make([]int32, len(j.ends))
	total := int32(0)
	for k, count := range j.ends {
		next[k] = total
		total += count
		j.ends[k] = total
	}
	j.members = make([]int32, total)
	for i, k := range callOf {
		if k >= 0 {
			j.members[next[k]] = int32(i)
			next[k]++
		}
	}
}

// each gives every call the item that has its id or, failing that, its origin.
func (j *join) each(calls, items *idList) {
	for i := range j.ends {
		k := items.find(calls.ids[i])
		if k < 0 {
			k = items.find(calls.origin(i))
		}
		if k >= 0 {
			j.members = append(j.members, int32(k))
		}
		j.ends[i] = int32(len(j.members))
	}
}
