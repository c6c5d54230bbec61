package lower

import (
	"context"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// Passes returns the names of all passes.
func Passes() (names []string) {
	for _, p := range passes {
		names = append(names, p.name)
	}
	return names
}

// Constraints returns what [constraints] say: first, then and why.
func Constraints() (out [][3]string) {
	for _, c := range constraints {
		out = append(out, [3]string{c.first, c.then, c.why})
	}
	return out
}

// unsimplified returns the unit of a model's graph before it is simplified.
func unsimplified(s Source, batch int) (*unit, error) {
	u, err := newUnit(context.Background(), s, batch, Request{Kind: prepared})
	if err != nil {
		return nil, err
	}
	for _, p := range passes {
		if p.name == "simplify" {
			break
		}
		if p.kinds&prepared == 0 {
			continue
		}
		if err := p.run(u); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// Types returns what ONNX Runtime tells of the values of a model as it is read.
func Types(t testing.TB, s Source, batch int) map[string]onnx.Type {
	t.Helper()
	u, err := unsimplified(s, batch)
	if err != nil {
		t.Fatal(err)
	}
	u.ctx = t.Context()
	if err := u.inferShapes(); err != nil {
		t.Fatal(err)
	}
	return u.types
}

// Simplified returns a model as ONNX Runtime simplifies it, with all of its weights or without those of at
// least that many elements that only multiply matrices, and how many of them there are.
func Simplified(t testing.TB, s Source, batch, least int) (*onnx.Model, int) {
	t.Helper()
	u, err := unsimplified(s, batch)
	if err != nil {
		t.Fatal(err)
	}
	count, multiplies := 0, multipliers(u.model, least)
	m, err := optimiseDetached(u.model, func(w *onnxpb.TensorProto) bool {
		detach := least > 0 && multiplies(w)
		if detach {
			count++
		}
		return detach
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, count
}

// Rewritten returns the graph of a model whose values have types that ONNX Runtime might tell, and which it
// leaves as it is. Values made in between have none.
func Rewritten(s Source, batch int, types map[string]onnx.Type) (_ *onnx.Graph, err error) {
	u, err := unsimplified(s, batch)
	if err != nil {
		return nil, err
	}
	if _, err := rewrite.ToOpset(u.model, types); err != nil {
		return nil, err
	}
	return onnx.NewGraph(u.model, types)
}

// Sunk returns the values of a graph of which sink_gather leaves less, and how many times.
func Sunk(t testing.TB, s Source, g *onnx.Graph, q Question) map[string]float64 {
	t.Helper()
	u := &unit{Spec: s.Spec, Request: Request{Kind: Backward, Question: q}, graph: g.Clone()}
	for _, p := range passes {
		if p.name == "sink_gather" && p.when(u) {
			if err := p.run(u); err != nil {
				t.Fatal(err)
			}
		}
	}
	less := map[string]float64{}
	for v, whole := range g.Types {
		if shape := u.graph.Shape(v); !slices.Equal(shape, whole.Shape) {
			less[v] = float64(onnx.Size(whole.Shape)) / float64(onnx.Size(shape))
		}
	}
	return less
}

// Unreshape returns which slices along an axis become slices of a value of another shape.
func Unreshape(axis int, at, in, out []int) (int, []int, bool) {
	p, ok := unreshape(selection{axis, at}, in, out)
	return p.axis, p.at, ok
}

// HalfWhy returns the reason in an operator's row of [halfTable], "" if it has none.
func HalfWhy(op string) string { return halfRows[op].why }
