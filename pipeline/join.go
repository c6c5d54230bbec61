package pipeline

import "fmt"

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
			if from.rootOf(e.Port) == n.calls {
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
			j := makeJoin(calls, items)
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

// makeJoin gives every call the item that has its id or, failing that, its origin.
func makeJoin(calls, items *idList) *join {
	j := &join{ends: make([]int32, calls.len())}
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
