package onnx

import (
	"fmt"
	"slices"
	"strings"
)

// Some names nodes in a message, given their [Node.Label]s: few of them individually, many by their
// operators and numbers, with an example.
func Some(labels []string) string {
	const few, long = 3, 100
	short := func(label string) string {
		if r := []rune(label); len(r) > long {
			return string(r[:long/2]) + "…" + string(r[len(r)-long/2:])
		}
		return label
	}
	if len(labels) <= few {
		var parts []string
		for _, l := range labels {
			parts = append(parts, short(l))
		}
		return strings.Join(parts, ", ")
	}
	count := map[string]int{}
	var ops []string
	for _, l := range labels {
		op, _, _ := strings.Cut(l, " ")
		if count[op]++; count[op] == 1 {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b string) int { return count[b] - count[a] })
	var parts []string
	for _, op := range ops[:min(few, len(ops))] {
		parts = append(parts, fmt.Sprintf("%d %s", count[op], op))
	}
	if others := len(ops) - few; others > 0 {
		parts = append(parts, fmt.Sprintf("%d other operators", others))
	}
	return fmt.Sprintf("%s, such as %s", strings.Join(parts, ", "), short(labels[0]))
}
