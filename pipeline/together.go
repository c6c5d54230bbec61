package pipeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// together returns the members of the job that a ready cell begins: itself, and the
// other ready cells whose work it may share, in the order of the plan.
func (r *run) together(first *node) []*member {
	members := []*member{{node: first}}
	if first.Stage.Together != "" {
		for _, n := range r.ready {
			if n != first && n.Stage.Together == first.Stage.Together && sameInputs(n.Cell, first.Cell) {
				members = append(members, &member{node: n})
			}
		}
	}
	slices.SortFunc(members, func(a, b *member) int { return cmp.Compare(a.Index, b.Index) })
	return members
}

// sameInputs reports whether two cells read the same outputs on the ports that they
// both have, and nothing on others.
func sameInputs(a, b *plan.Cell) bool { return reads(a, b) && reads(b, a) }

// reads reports whether a reads what b reads, wherever b reads anything.
func reads(a, b *plan.Cell) bool {
	for p := range b.Inputs {
		edges := b.Inputs[p].Edges
		if len(edges) == 0 {
			continue
		}
		k := portIndex(a.Stage.Inputs, b.Stage.Inputs[p].Name)
		same := func(e, f plan.Edge) bool { return e.From == f.From && e.Port == f.Port }
		if k < 0 || !slices.EqualFunc(a.Inputs[k].Edges, edges, same) {
			return false
		}
	}
	return true
}

// beside returns the later members of m's job that m may share its work on some
// calls with: none of them has failed, or knows one of the calls already.
func (r *run) beside(ctx context.Context, slot *device.Slot, m *member, calls []int) []stages.Beside {
	if m.Stage.Together == "" {
		return nil
	}
	var others []*member
	for _, o := range m.in {
		if o.Index > m.Index && o.Stage.Together == m.Stage.Together && sameInputs(o.Cell, m.Cell) && o.failure() == nil {
			others = append(others, o)
		}
	}
	slices.SortFunc(others, func(a, b *member) int { return cmp.Compare(a.Index, b.Index) })
	var out []stages.Beside
	for _, o := range others {
		known := slices.ContainsFunc(calls, func(call int) bool {
			key, ok, err := r.itemKey(ctx, slot, o, call)
			return err != nil || ok && r.find(o, call, key)
		})
		if !known {
			out = append(out, stages.Beside{Stage: o.Stage, Params: o.Params})
		}
	}
	return out
}
