package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// position returns the index of the node of the model that produces v.
func (b *Builder) position(v Value) (int, bool) {
	if b.producers == nil {
		b.producers = map[Value]int{}
		for k, n := range b.model {
			for _, v := range n.Output {
				if v != "" {
					b.producers[v] = k
				}
			}
		}
	}
	k, ok := b.producers[v]
	return k, ok
}

// between returns the nodes of the model that may be between from and to. A rule that examines one block of a
// net then takes time proportional to the block, not to the net.
func (b *Builder) between(from, to []Value) []onnx.Node {
	first, last := len(b.model), 0
	for _, v := range from {
		k, ok := b.position(v)
		if !ok { // an input
			k = -1
		}
		first = min(first, k+1)
	}
	for _, v := range to {
		if k, ok := b.position(v); ok {
			last = max(last, k+1)
		}
	}
	return b.model[first:max(first, last)]
}

// memoise returns find(v) and caches it. The result must not depend on when it is computed.
func memoise(known *map[Value]bool, v Value, find func(Value) bool) bool {
	if *known == nil {
		*known = map[Value]bool{}
	}
	found, ok := (*known)[v]
	if !ok {
		found = find(v)
		(*known)[v] = found
	}
	return found
}
