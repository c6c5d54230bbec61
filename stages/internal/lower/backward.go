package lower

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// backward emits a backward pass for each question. Rules examine the readers of a value; so each pass sees
// only the model, without the other backward passes.
func (u *unit) backward() error {
	g := u.graph
	if err := u.explain(); err != nil {
		return err
	}
	u.forward = slices.Clip(g.Proto.Graph.Node)
	var emitted []*onnxpb.NodeProto
	for k, q := range u.questions() {
		g.Proto.Graph.Node = u.forward
		if err := u.answerQuestion(k, q); err != nil {
			return err
		}
		emitted = append(emitted, g.Proto.Graph.Node[len(u.forward):]...)
	}
	g.Proto.Graph.Node = append(u.forward, emitted...)
	u.show(len(u.forward))
	return nil
}

// number distinguishes the outputs for question k from the others.
func number(k int) string {
	if k == 0 {
		return ""
	}
	return strconv.Itoa(k + 1)
}

// answerQuestion emits question k's backward pass, and adds its results to the outputs.
func (u *unit) answerQuestion(k int, q Question) error {
	f := u.graph.Fragment()
	start, err := u.seed(f, k, q)
	if err != nil {
		return err
	}
	u.graph.After(f)
	if err := u.vjp(k, q, start); err != nil {
		return err
	}
	if u.Sum == "" && u.Substitute == nil {
		u.value(k, q)
	}
	if q.Start != StartDerivative {
		u.signature.Outputs = append(u.signature.Outputs, IO{"began" + number(k), []int{u.batch, u.Classes}})
	}
	return nil
}

// vjp emits the backward pass from a seed to question k's layer, and returns its result.
func (u *unit) vjp(k int, q Question, start seed) error {
	var entries []relevance.Entry
	var shares relevance.Shares
	var results map[string]string
	var err error
	seeds, wrt := map[string]string{start.at: start.cotangent}, []string{u.wrt[k]}
	if u.Audit {
		results, entries, err = u.without().Audit(u.graph, seeds, wrt, q.Rules)
	} else {
		results, shares, err = u.without().BackwardWithShares(u.graph, seeds, wrt, q.Rules)
	}
	if err != nil {
		return err
	}
	u.signature.Backward++
	derivative := results[u.wrt[k]]
	if derivative == "" {
		return noLayer(q.Layer, "nothing of the answer depends on it")
	}
	f := u.graph.Fragment()
	if q.Layer == "" {
		derivative = u.leave(f, derivative)
	}
	v := IO{"derivative" + number(k), u.shapes[k].LayerShape(u.batch)}
	if u.Times != nil {
		derivative = f.Op("Mul", []string{derivative, u.Times(f)})
	}
	if u.Sum != "" {
		derivative = addUp(f, derivative, u.batch, u.Sum)
		v.Shape = u.shapes[k].LayerShape(1)
	}
	f.OpTo(v.Value(), "Identity", []string{derivative})
	u.graph.After(f)
	u.signature.Outputs = append(u.signature.Outputs, v)
	u.signature.Entries = append(u.signature.Entries, entries...)
	u.returnShares(k, shares)
	return nil
}

// SharesOutput is the name of the output of the i-th plane of [relevance.Shares], for the question with a
// number.
func SharesOutput(number string, i int) string { return fmt.Sprintf("shares%s_%d", number, i) }

// returnShares adds the shares of constants to the outputs for question k.
func (u *unit) returnShares(k int, s relevance.Shares) {
	f := u.graph.Fragment()
	put := func(name, v string) {
		out := IO{name, u.graph.Shape(v)}
		f.OpTo(out.Value(), "Identity", []string{v})
		u.signature.Outputs = append(u.signature.Outputs, out)
	}
	for i, v := range s.Planes {
		put(SharesOutput(number(k), i), v)
	}
	if s.Total != "" {
		put("total"+number(k), s.Total)
	}
	u.graph.After(f)
}

// addUp emits runexp_sum plus the rows of x times runexp_weights, one row after the other: the sum has the
// same bits for any number of rows in a run.
func addUp(f *onnx.Fragment, x string, batch int, s Summand) string {
	switch s {
	case Magnitude:
		x = f.Op("Abs", []string{x})
	case Square:
		x = f.Op("Mul", []string{x, x})
	}
	x = f.Op("Mul", []string{x, prefix + "weights"})
	sum := prefix + "sum"
	for i := range batch {
		row := f.Op("Slice", []string{x, f.Ints("from", []int64{int64(i)}, 1),
			f.Ints("to", []int64{int64(i + 1)}, 1), f.Ints("axis", []int64{0}, 1)})
		sum = f.Op("Add", []string{sum, row})
	}
	return sum
}
