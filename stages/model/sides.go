package model

import (
	"fmt"
	"strings"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// twoSides makes two classes of a model that returns one number an image, a logit z or a probability p of
// the positive class: its payload's graph goes on to the logits −z and z or the probabilities 1 − p and p.
// So the negative class is a class like any other, and readers of the model needn't know models with one
// output.
//
// −z is exact; so 1 − p, as the sigmoid of −z, keeps its digits where p is near 1. Of a model that returns
// p and no logit it has those that p leaves.
func twoSides(m *modelfile.Model) error {
	s := &m.Spec
	if s.Classes != 1 {
		return nil
	}
	file, err := onnx.Parse(m.ONNX)
	if err != nil {
		return err
	}
	f := file.Fragment()
	last := s.Output
	add := func(op string, in string, attrs ...onnx.Attr) {
		out, inputs := file.Fresh("sides/"+op), []string{last}
		if in != "" {
			inputs = append(inputs, in)
		}
		f.OpTo(out, op, inputs, attrs...)
		last = out
	}
	add("Cast", "", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	add("Reshape", f.Ints("row", []int64{-1, 1}, 2))
	add("Mul", f.Floats("sides", []float32{-1, 1}, 1, 2))
	if s.Probabilities {
		add("Add", f.Floats("whole", []float32{1, 0}, 1, 2))
	}
	file.After(f)
	s.Output, s.Classes, s.Independent, s.Sides = last, 2, true, true
	m.ONNX, err = file.Encode()
	return err
}

// sidesNamed returns the names of both classes of a model with one output, from a list of two names, or
// from one name, the positive class's.
func sidesNamed(names []string) ([]string, error) {
	switch len(names) {
	case 1:
		return []string{"not " + names[0], names[0]}, nil
	case 2:
		return names, nil
	}
	return nil, fmt.Errorf("a model with one output has two classes: the negative, 0, and the positive, 1; "+
		"one name is that of the positive class, two are those of both, and not %d: %s", len(names),
		strings.Join(names[:min(len(names), 3)], ", "))
}
