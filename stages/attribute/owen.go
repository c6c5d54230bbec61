package attribute

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A box is a node of the tree that halves an image: the leaves in rows top ≤ y < bottom, columns
// left ≤ x < right and planes first ≤ c < last.
type box struct{ top, bottom, left, right, first, last int }

func (b box) size() int { return (b.bottom - b.top) * (b.right - b.left) * (b.last - b.first) }

// halves returns the children of a box, which is halved along its longer side, along its planes if it is a
// pixel. The trailing one comes first and is the smaller one of an odd side: shap numbers leaves backwards.
func (b box) halves() [2]box {
	trailing, leading := b, b
	switch rows, columns := b.bottom-b.top, b.right-b.left; {
	case rows >= columns && rows > 1:
		trailing.top = b.bottom - rows/2
		leading.bottom = trailing.top
	case columns > 1:
		trailing.left = b.right - columns/2
		leading.right = trailing.left
	default:
		trailing.first = b.last - (b.last-b.first)/2
		leading.last = trailing.first
	}
	return [2]box{trailing, leading}
}

// each calls use with the runs of leaves of a box, in an image of the whole's sides: leaves from ≤ k < to.
func (b box) each(whole box, use func(from, to int)) {
	for c := b.first; c < b.last; c++ {
		for y := b.top; y < b.bottom; y++ {
			row := (c*whole.bottom + y) * whole.right
			use(row+b.left, row+b.right)
		}
	}
}

// A coalition is a set of leaves that are shown: a box and those of another coalition. nil shows none.
type coalition struct {
	box
	rest *coalition
}

// render writes a mask of the coalition: 1 shows a leaf.
func (c *coalition) render(whole box, mask []float32) {
	clear(mask)
	for ; c != nil; c = c.rest {
		c.each(whole, func(from, to int) { fill(mask[from:to], 1) })
	}
}

// An owenNode is a box in the context of a coalition. Its effect is to be divided among its halves.
type owenNode struct {
	box
	context       *coalition
	without, with float64 // the response for the context, and for the context and the box
	weight        float64
	urgency       float64    // of nodes in the queue, the first of the most urgent ones is opened
	halves        [2]float64 // the response for the context and one half
	known         [2]bool
}

func (n *owenNode) effect() float64 { return (n.with - n.without) * n.weight }

// An owen estimates the Owen values of leaves: the Shapley values of a game where coalitions follow the tree
// that halves the image. Each node is opened in several contexts: with its sibling and without. Those with
// the largest effect come first, as in shap; the effect of a node that isn't opened is shared equally by its
// leaves. So values always sum to the difference of the responses for all leaves and for none.
type owen struct {
	whole       box
	evaluations int // of the response; an odd number is rounded up
	atOnce      int // nodes that are opened before the next are chosen
	batch       int // the most coalitions that respond gets at once

	respond func(ctx context.Context, batch []*coalition) ([]float64, error)

	queue  []*owenNode // the most urgent first
	values []float64
	ahead  int // responses that are known to nodes in the queue
}

// solve returns the value of each leaf.
func (o *owen) solve(ctx context.Context) ([]float64, error) {
	o.values = make([]float64, o.whole.size())
	root := &owenNode{box: o.whole, weight: 1}
	first := []*coalition{nil, {box: o.whole}}
	if o.whole.size() > 1 && o.evaluations > 2 {
		for _, half := range o.whole.halves() {
			first = append(first, &coalition{box: half})
		}
	}
	responses, err := o.responses(ctx, first)
	if err != nil {
		return nil, err
	}
	root.without, root.with = responses[0], responses[1]
	o.ahead = copy(root.halves[:], responses[2:])
	root.known = [2]bool{o.ahead > 0, o.ahead > 0}
	o.queue = []*owenNode{root}
	for evaluated := 2; len(o.queue) > 0 && evaluated < o.evaluations; {
		var opened []*owenNode
		for len(o.queue) > 0 && len(opened) < o.atOnce && evaluated < o.evaluations {
			n := o.queue[0]
			o.queue = o.queue[1:]
			if n.size() == 1 {
				o.settle(n)
				continue
			}
			opened = append(opened, n)
			evaluated += 2
		}
		if err := o.evaluate(ctx, opened); err != nil {
			return nil, err
		}
		for _, n := range opened {
			o.open(n)
		}
	}
	for _, n := range o.queue {
		o.settle(n)
	}
	return o.values, nil
}

// settle shares a node's effect equally among its leaves.
func (o *owen) settle(n *owenNode) {
	share := n.effect() / float64(n.size())
	n.each(o.whole, func(from, to int) {
		for k := from; k < to; k++ {
			o.values[k] += share
		}
	})
}

// evaluate computes the responses that nodes need. Batches are filled up with those that the most urgent
// nodes of the queue will need.
func (o *owen) evaluate(ctx context.Context, opened []*owenNode) error {
	type need struct {
		*owenNode
		half int
	}
	var needs []need
	for _, n := range opened {
		for half, known := range n.known {
			if known {
				o.ahead--
			} else {
				needs = append(needs, need{n, half})
			}
		}
	}
	for _, n := range o.queue {
		if len(needs)%o.batch == 0 || o.ahead >= o.batch {
			break
		}
		for half, known := range n.known {
			if !known && n.size() > 1 && len(needs)%o.batch != 0 {
				needs = append(needs, need{n, half})
				o.ahead++
			}
		}
	}
	coalitions := make([]*coalition, len(needs))
	for k, n := range needs {
		coalitions[k] = &coalition{n.box.halves()[n.half], n.context}
	}
	responses, err := o.responses(ctx, coalitions)
	for k, response := range responses {
		needs[k].owenNode.halves[needs[k].half], needs[k].known[needs[k].half] = response, true
	}
	return err
}

// responses returns the responses of coalitions, computed batch by batch.
func (o *owen) responses(ctx context.Context, coalitions []*coalition) (all []float64, err error) {
	for batch := range slices.Chunk(coalitions, o.batch) {
		responses, err := o.respond(ctx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, responses...)
	}
	return all, nil
}

// open replaces a node by its halves, each in two contexts: with the other one and without.
func (o *owen) open(n *owenNode) {
	boxes := n.box.halves()
	for k, own := range boxes {
		o.put(&owenNode{box: own, context: n.context, without: n.without, with: n.halves[k],
			weight: n.weight / 2})
	}
	for k, own := range boxes {
		o.put(&owenNode{box: own, context: &coalition{boxes[1-k], n.context}, without: n.halves[1-k],
			with: n.with, weight: n.weight / 2})
	}
}

// put puts a node into the queue.
func (o *owen) put(n *owenNode) {
	n.urgency = math.Abs(n.with-n.without) * n.weight
	at, _ := slices.BinarySearchFunc(o.queue, n, func(other, n *owenNode) int {
		return cmp.Or(cmp.Compare(n.urgency, other.urgency), -1) // after equal ones
	})
	o.queue = slices.Insert(o.queue, at, n)
}
