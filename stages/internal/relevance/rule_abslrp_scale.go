package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// tiny is the ε of equation 12 and of all sums that are divided by.
const tiny = 1e-9

// spread carries what arrives at a node's output, r, to its inputs. The function share, linear in its
// argument, says what they get of r divided by the magnitude of h, or of r itself if h is "".
func (a AbsLRP) spread(b *Builder, n onnx.Node, r, h Value, share func(s Value) []Value) []Value {
	divided := func(r Value) Value {
		if h == "" {
			return r
		}
		magnitude := h
		if !b.nonNegative(h) {
			magnitude = b.Unary("Abs", h)
		}
		return b.Div(r, b.Add(magnitude, b.Scalar(tiny)))
	}
	if a.Variant == AbsLRPJanuary {
		return a.conserve(b, n, n.Input, n.Output[0], r, func(r Value) []Value { return share(divided(r)) })
	}
	if a.Variant == AbsLRPPaper && b.since[n.Output[0]] >= 4 && b.isCut(n) && !a.everywhere {
		// All there is goes through here, so that a factor changes the map's scale alone. Without it
		// relevance would leave float32 in deep models.
		r = b.toOne(n, n.Output[0], r)
		b.since[n.Output[0]] = 0
	}
	return a.hand(b, n, share(divided(r)))
}

// hand finishes what a module gives to its inputs: the code of December 2024 scales each to the sum of
// magnitudes 1. That is done where it makes a difference, which is where relevance of another way is added
// later on, and in long chains now and then, to stay in float32's range.
func (a AbsLRP) hand(b *Builder, n onnx.Node, back []Value) []Value {
	const long = 8
	for i, r := range back {
		if r == "" || !b.flows[n.Input[i]] {
			continue
		}
		v := n.Input[i]
		b.follows(v, n)
		if a.Variant == AbsLRPOfficial && (b.meets(v) || b.since[v] >= long || a.everywhere) {
			back[i] = b.toOne(n, v, r)
			b.since[v] = 0
		}
	}
	return back
}

// follows notes that relevance at v has passed node n.
func (b *Builder) follows(v Value, n onnx.Node) {
	if b.since == nil {
		b.since = map[Value]int{}
	}
	for _, out := range n.Output {
		b.since[v] = max(b.since[v], b.since[out]+1)
	}
}

// toOne emits r, relevance at v, divided by its sum of magnitudes in each image.
func (b *Builder) toOne(n onnx.Node, v, r Value) Value {
	at, ok := b.rowOf(v)
	if !ok {
		b.Fail(n, "it can't be told where in %q the images of a batch are, which absLRP scales one by one", v)
		return r
	}
	sum := b.Add(b.perImage(b.Unary("Abs", r), at), b.Scalar(tiny))
	return b.eachImage(r, b.Div(b.Scalar(1), sum), at)
}

// conserve is the rule of January 2024: what is positive of r goes to the inputs as share says, scaled so
// that they get as much as there was, and what is negative the same way. Several inputs get parts of that in
// the ratio of their sums.
func (a AbsLRP) conserve(b *Builder, n onnx.Node, inputs []Value, output, r Value,
	share func(s Value) []Value) []Value {
	at := func(v Value) (row, bool) {
		if b.flows[v] {
			return b.rowOf(v)
		}
		return b.rowOf(output) // a constant's share comes in the form of the output
	}
	out := make([]Value, len(inputs))
	for _, half := range []Value{b.above(r), b.below(r)} {
		where, ok := at(output)
		if !ok {
			b.Fail(n, "it can't be told where in %q the images of a batch are, whose sums absLRP keeps",
				output)
			return out
		}
		arrives := b.perImage(b.Unary("Abs", half), where)
		back := share(half)
		var sums, ways []Value
		var all Value
		for i, v := range back {
			sums, ways = append(sums, ""), append(ways, "")
			if v == "" {
				continue
			}
			where, ok := at(inputs[i])
			if !ok {
				b.Fail(n, "it can't be told where in %q the images of a batch are, whose sums absLRP keeps",
					inputs[i])
				return out
			}
			sums[i] = b.perImage(v, where)
			ways[i] = b.eachImage(v,
				b.Div(arrives, b.Add(b.perImage(b.Unary("Abs", v), where), b.Scalar(tiny))), where)
			all = b.plus(all, sums[i])
		}
		several := len(slices.DeleteFunc(slices.Clone(sums), func(v Value) bool { return v == "" })) > 1
		for i, v := range ways {
			if v == "" || !b.flows[inputs[i]] {
				continue
			}
			if several {
				where, _ := at(inputs[i])
				v = b.eachImage(v, b.Div(sums[i], b.Add(all, b.Scalar(tiny))), where)
			}
			out[i] = b.plus(out[i], v)
		}
	}
	return out
}

// meets reports whether relevance at v is added to other relevance before a module scales it again, or is
// what was asked for.
func (b *Builder) meets(v Value) bool {
	for {
		if slices.Contains(b.ends, v) || len(b.readers(v)) != 1 {
			return true
		}
		n, _, ok := b.maker(v)
		if !ok {
			return true
		}
		op := b.op(n)
		if op.Kind != Move && !rescales(b, op, n) {
			return false
		}
		if len(n.Output) > 1 {
			return true
		}
		from := slices.DeleteFunc(slices.Clone(n.Input), func(v Value) bool { return !b.flows[v] })
		if len(from) != 1 {
			return true
		}
		v = from[0]
	}
}

// readers returns the positions in the model of the nodes that read v and that relevance may come from.
func (b *Builder) readers(v Value) []int {
	b.findReaders()
	return b.reads[v]
}

func (b *Builder) findReaders() {
	if b.reads != nil {
		return
	}
	b.reads = map[Value][]int{}
	wanted := map[Value]bool{}
	for _, v := range b.seeds {
		wanted[v] = true
	}
	for k, n := range slices.Backward(b.model) {
		op := b.op(n)
		if op == nil || op.Kind == Opaque ||
			!slices.ContainsFunc(n.Output, func(v Value) bool { return wanted[v] }) {
			continue
		}
		for i, v := range n.Input {
			if r := b.reads[v]; b.flows[v] && op.Role(i) != Config && (len(r) == 0 || r[len(r)-1] != k) {
				wanted[v] = true
				b.reads[v] = append(r, k)
			}
		}
	}
	last := func(v Value) int { // readers were found from the last on
		if r := b.reads[v]; len(r) > 0 {
			return r[0]
		}
		return -1
	}
	reach := -1
	for _, v := range b.ends {
		reach = max(reach, last(v))
	}
	for _, n := range b.model {
		b.before = append(b.before, reach)
		for _, v := range n.Output {
			reach = max(reach, last(v))
		}
	}
}

// isCut reports whether all relevance passes the output of n: nothing made before is read after.
func (b *Builder) isCut(n onnx.Node) bool {
	b.findReaders()
	k, ok := b.position(n.Output[0])
	return ok && len(n.Output) == 1 && b.before[k] <= k
}
