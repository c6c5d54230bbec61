package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// position returns which node of the model makes v.
func (b *Builder) position(v Value) (int, bool) {
	if b.makers == nil {
		b.makers = map[Value]int{}
		for k, n := range b.model {
			for _, v := range n.Output {
				if v != "" {
					b.makers[v] = k
				}
			}
		}
	}
	k, ok := b.makers[v]
	return k, ok
}

// between returns the nodes of the model that may lie between values and others that depend on them. A rule
// that looks at one block of a net takes as long as the block is, not as long as the net.
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

// remember returns what find tells of v, and asks it once. What it tells mustn't depend on when it is asked.
func remember(known *map[Value]bool, v Value, find func(Value) bool) bool {
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
