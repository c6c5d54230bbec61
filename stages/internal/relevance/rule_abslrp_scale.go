package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// tiny is the ε of equation 12 and of all divisors that are sums.
const tiny = 1e-9

// propagate propagates relevance r from a node's output to its inputs. The function share, linear in its
// argument, returns the inputs' relevance given r divided by the magnitude of h, or r itself if h is "".
func (a AbsLRP) propagate(b *Builder, n onnx.Node, r, h Value, share func(s Value) []Value) []Value {
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
	if a.Variant == AbsLRPPaper && b.sinceScaled[n.Output[0]] >= 4 && b.isCut(n) && !a.everywhere {
		// All relevance passes this value, so that a factor only changes the scale of the map. Without it
		// relevance of deep models would leave the range of float32.
		r = b.normalise(n, n.Output[0], r)
		b.sinceScaled[n.Output[0]] = 0
	}
	return a.finish(b, n, share(divided(r)))
}

// finish scales the relevance that a module passes to its inputs: in the code of December 2024, each to a sum
// of magnitudes of 1. It does so only where it affects the result, before relevance from elsewhere is added,
// and occasionally in long chains to stay in the range of float32.
func (a AbsLRP) finish(b *Builder, n onnx.Node, back []Value) []Value {
	const long = 8
	for i, r := range back {
		if r == "" || !b.flows[n.Input[i]] {
			continue
		}
		v := n.Input[i]
		b.follows(v, n)
		if a.Variant == AbsLRPOfficial && (b.meets(v) || b.sinceScaled[v] >= long || a.everywhere) {
			back[i] = b.normalise(n, v, r)
			b.sinceScaled[v] = 0
		}
	}
	return back
}

// follows records that relevance at v has passed node n.
func (b *Builder) follows(v Value, n onnx.Node) {
	if b.sinceScaled == nil {
		b.sinceScaled = map[Value]int{}
	}
	for _, out := range n.Output {
		b.sinceScaled[v] = max(b.sinceScaled[v], b.sinceScaled[out]+1)
	}
}

// normalise emits r, the relevance at v, divided by its sum of magnitudes per image.
func (b *Builder) normalise(n onnx.Node, v, r Value) Value {
	at, ok := b.batchAxisOf(v)
	if !ok {
		b.Fail(n, "the batch axis of %q is unknown, and absLRP scales each image", v)
		return r
	}
	sum := b.Add(b.sumPerImage(b.Unary("Abs", r), at), b.Scalar(tiny))
	return b.scalePerImage(r, b.Div(b.Scalar(1), sum), at)
}

// conserve is the rule of January 2024: positive and negative relevance are propagated separately by share,
// and scaled to preserve their sums. Several inputs divide a sum in the ratio of theirs.
func (a AbsLRP) conserve(b *Builder, n onnx.Node, inputs []Value, output, r Value,
	share func(s Value) []Value) []Value {
	at := func(v Value) (batchAxis, bool) {
		if b.flows[v] {
			return b.batchAxisOf(v)
		}
		return b.batchAxisOf(output) // a constant's share has the shape of the output
	}
	out := make([]Value, len(inputs))
	for _, half := range []Value{b.positivePart(r), b.negativePart(r)} {
		where, ok := at(output)
		if !ok {
			b.Fail(n, "the batch axis of %q is unknown, and absLRP conserves the sum of each image",
				output)
			return out
		}
		incoming := b.sumPerImage(b.Unary("Abs", half), where)
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
				b.Fail(n, "the batch axis of %q is unknown, and absLRP conserves the sum of each image",
					inputs[i])
				return out
			}
			sums[i] = b.sumPerImage(v, where)
			ways[i] = b.scalePerImage(v,
				b.Div(incoming, b.Add(b.sumPerImage(b.Unary("Abs", v), where), b.Scalar(tiny))), where)
			all = b.plus(all, sums[i])
		}
		several := len(slices.DeleteFunc(slices.Clone(sums), func(v Value) bool { return v == "" })) > 1
		for i, v := range ways {
			if v == "" || !b.flows[inputs[i]] {
				continue
			}
			if several {
				where, _ := at(inputs[i])
				v = b.scalePerImage(v, b.Div(sums[i], b.Add(all, b.Scalar(tiny))), where)
			}
			out[i] = b.plus(out[i], v)
		}
	}
	return out
}

// meets reports whether relevance at v is added to other relevance before a module scales it again, or v is
// one of wrt.
func (b *Builder) meets(v Value) bool {
	for {
		if slices.Contains(b.wrt, v) || len(b.readers(v)) != 1 {
			return true
		}
		n, _, ok := b.producer(v)
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

// readers returns the indices of the model's nodes that read v and may pass relevance to it.
func (b *Builder) readers(v Value) []int {
	b.findReaders()
	return b.reads[v]
}

func (b *Builder) findReaders() {
	if b.reads != nil {
		return
	}
	b.reads = map[Value][]int{}
	needed := map[Value]bool{}
	for _, v := range b.seeds {
		needed[v] = true
	}
	for k, n := range slices.Backward(b.model) {
		op := b.op(n)
		if op == nil || op.Kind == Opaque ||
			!slices.ContainsFunc(n.Output, func(v Value) bool { return needed[v] }) {
			continue
		}
		for i, v := range n.Input {
			if r := b.reads[v]; b.flows[v] && op.Role(i) != Config && (len(r) == 0 || r[len(r)-1] != k) {
				needed[v] = true
				b.reads[v] = append(r, k)
			}
		}
	}
	last := func(v Value) int { // readers are in reverse order
		if r := b.reads[v]; len(r) > 0 {
			return r[0]
		}
		return -1
	}
	reach := -1
	for _, v := range b.wrt {
		reach = max(reach, last(v))
	}
	for _, n := range b.model {
		b.lastReader = append(b.lastReader, reach)
		for _, v := range n.Output {
			reach = max(reach, last(v))
		}
	}
}

// isCut reports whether all relevance passes the output of n: no value produced before it is read after it.
func (b *Builder) isCut(n onnx.Node) bool {
	b.findReaders()
	k, ok := b.position(n.Output[0])
	return ok && len(n.Output) == 1 && b.lastReader[k] <= k
}
