package program

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// TargetNodes are the classes of a batch's targets as values of a draft: 1 at the class of a row [batch or 1,
// classes], and 0 elsewhere.
type TargetNodes struct{ Class, Minus string } // Minus is "" without a class whose response is subtracted

// Nodes emits the classes that e names, given the model's answer [batch, classes] and the classes that the
// user feeds, int64 [batch], or "".
func (e Expression) Nodes(d *standalone.Draft, answer, fed string, classes int) (t TargetNodes, err error) {
	if fed != "" {
		t.Class = oneHot(d, d.Op("Reshape", []string{fed, d.Ints(-1, 1)}), classes)
		return t, nil
	}
	if err := e.Fits(classes); err != nil {
		return t, err
	}
	for i, o := range e.operands {
		if o.label {
			return t, stages.BadField("target", "target label: a file knows no labels; it can take the "+
				"class as an input, --target-input")
		}
		v := o.nodes(d, answer, classes)
		if i == 0 {
			t.Class = v
		} else {
			t.Minus = v
		}
	}
	return t, nil
}

// nodes emits 1 at the operand's class.
func (o operand) nodes(d *standalone.Draft, answer string, classes int) string {
	switch {
	case o.rank == 1:
		first := d.Op("ArgMax", []string{answer}, onnx.Attr{Name: "axis", Value: 1})
		return oneHot(d, first, classes)
	case o.rank > 1:
		f := d.Fresh("runexp_largest")
		best := d.Fresh("runexp_best")
		d.Proto.Graph.Node = append(d.Proto.Graph.Node, onnx.NewNode(best, "TopK",
			[]string{answer, d.Ints(int64(o.rank))}, []string{f, best}, onnx.Attr{Name: "axis", Value: 1}))
		last := int64(o.rank - 1)
		return oneHot(d, d.Op("Slice", []string{best, d.Ints(last), d.Ints(last + 1), d.Ints(1)}), classes)
	}
	row := make([]float32, classes)
	row[o.class] = 1
	return d.Singles(row, 1, int64(classes))
}

// oneHot emits 1 at the class [batch, 1] of a row. A number that is no class gives a row of zeros.
func oneHot(d *standalone.Draft, class string, classes int) string {
	all := make([]int64, classes)
	for i := range all {
		all[i] = int64(i)
	}
	is := d.Op("Equal", []string{class, d.Fragment().Ints("classes", all, 1, int64(classes))})
	return d.Op("Cast", []string{is}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
}

// is emits whether a number is 1.
func is(d *standalone.Draft, v string) string {
	return d.Op("Cast", []string{v}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_BOOL)})
}

// Weights emits how much each class counts for the target, [batch, classes], under the name to.
func (t TargetNodes) Weights(d *standalone.Draft, to string, classes int) {
	v := t.Class
	if t.Minus != "" {
		v = d.Op("Sub", []string{v, t.Minus})
	}
	d.OpTo(to, "Expand", []string{v, d.Shape(d.Batch, classes)})
}

// Counts emits what a function writes for each class, given the row and the target, under the name to. The
// function treats all classes alike but the target's.
func (t TargetNodes) Counts(d *standalone.Draft, to string, n *Net,
	counts func(row []float32, t Target) error) error {
	if n.Heads > 0 {
		return fmt.Errorf("the model has %d heads, whose classes don't compete", n.Heads)
	}
	of := Target{Class: 0, Minus: -1}
	if t.Minus != "" {
		of.Minus = 1
	}
	row := make([]float32, n.Classes)
	if err := counts(row, of); err != nil {
		return err
	}
	number := func(v float32) string { return d.Singles([]float32{v}) }
	v := number(row[n.Classes-1]) // of a class that the target doesn't name, if there is one
	if of.Minus >= 0 {
		v = d.Op("Where", []string{is(d, t.Minus), number(row[1]), v})
	}
	v = d.Op("Where", []string{is(d, t.Class), number(row[0]), v})
	d.OpTo(to, "Expand", []string{v, d.Shape(d.Batch, n.Classes)})
	return nil
}
