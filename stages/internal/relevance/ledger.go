package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// An Entry says what became of the relevance at a node: values of shape [1], each a sum over everything in a
// batch.
type Entry struct {
	Node, Op  string
	Arrives   Value // at its outputs
	Leaves    Value // for those of its inputs that depend on where relevance is wanted
	Constants Value // share of biases and other constants; "" where there is none
	Size      Value // the sum of magnitudes of what leaves
}

// Audit is [Backward], and returns besides what becomes of relevance at every node on the way, from the seeds
// on.
func Audit(g *onnx.Graph, seeds map[Value]Value, wrt []Value, p Policy) (map[Value]Value, []Entry, error) {
	b := newBuilder(g)
	b.accounts, b.accountsOf = true, p.Name
	arrived, err := b.backward(seeds, wrt, p)
	return arrived, b.ledger, err
}

// toConstants notes relevance that a constant takes, for the node at hand.
func (b *Builder) toConstants(v Value) {
	if b.accounts {
		b.taken = b.plus(b.taken, b.total(v))
	}
}

// enterLedger notes what a rule made of the relevance r.
func (b *Builder) enterLedger(n onnx.Node, r, back []Value) {
	e := Entry{Node: n.Name, Op: n.OpType, Constants: b.taken}
	if e.Node == "" {
		e.Node = n.Output[0]
	}
	b.taken = ""
	for _, v := range r {
		if v != "" {
			e.Arrives = b.plus(e.Arrives, b.total(v))
		}
	}
	for i, v := range back {
		if v != "" && b.flows[n.Input[i]] {
			e.Leaves = b.plus(e.Leaves, b.total(v))
			e.Size = b.plus(e.Size, b.total(b.Unary("Abs", v)))
		}
	}
	b.ledger = append(b.ledger, e)
}

// total emits the sum of all elements of v, of shape [1].
func (b *Builder) total(v Value) Value {
	axes := make([]int, len(b.Shape(v)))
	for i := range axes {
		axes[i] = i
	}
	return b.Reshape(b.Sum(v, axes, false), 1)
}
