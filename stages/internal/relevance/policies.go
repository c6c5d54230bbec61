package relevance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// named are the policies that have names.
func named() map[string]Policy {
	return map[string]Policy{
		"gradient": nil,
		// Springenberg et al., "Striving for Simplicity: The All Convolutional Net",
		// ICLR 2015 workshop, section 3.4.
		"guided": {{Match: rectifier, Rule: guided}},
		// Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks",
		// ECCV 2014, section 2.1.
		"deconvolution": {{Match: rectifier, Rule: deconvolution}},
	}
}

// Named returns the policy of that name: gradient, guided or deconvolution.
func Named(name string) (Policy, error) {
	p, ok := named()[name]
	if !ok {
		var names []string
		for n := range named() {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("no policy is called %q: there are %s", name, strings.Join(names, ", "))
	}
	return p, nil
}

// rectifier matches operators that cut off what is negative and keep the rest, up
// to a bound perhaps.
func rectifier(g *onnx.Graph, _ *Op, n onnx.Node) bool {
	switch n.OpType {
	case "Relu":
		return true
	case "Clip":
		low, ok := g.Float32s(n.In(1))
		return ok && len(low) == 1 && low[0] == 0
	}
	return false
}

// guided keeps of the gradient what is positive.
func guided(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return positive(b, op.VJP(b, n, r))
}

// deconvolution keeps what is positive of what arrives, whatever went forward.
func deconvolution(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	back := make([]Value, len(n.Input))
	back[0] = r[0]
	return positive(b, back)
}

func positive(b *Builder, values []Value) []Value {
	for i, v := range values {
		if v != "" {
			values[i] = b.Unary("Relu", v)
		}
	}
	return values
}
