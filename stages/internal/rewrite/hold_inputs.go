package rewrite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A HeldInput is an input that is held constant.
type HeldInput struct {
	Name   string
	Values []float64 // one for all, or one each, of an image
}

// ParseHeldInput reads NAME=NUMBERS.
func ParseHeldInput(text string) (c HeldInput, err error) {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return c, fmt.Errorf("%q isn't an input and its numbers: NAME=NUMBER, or NAME=NUMBER, NUMBER, …",
			text)
	}
	c.Name = strings.TrimSpace(text[:at])
	for part := range strings.SplitSeq(text[at+1:], ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return c, fmt.Errorf("%q: %q is no number", text, strings.TrimSpace(part))
		}
		c.Values = append(c.Values, v)
	}
	return c, nil
}

// HoldInputs makes inputs of a model constants. Those whose first axis is that of the images, which the first
// of the other inputs takes, get the same numbers for every image.
func HoldInputs(m *onnx.Model, list []HeldInput) error {
	rest := slices.DeleteFunc(m.Inputs(), func(v onnx.Value) bool {
		return slices.ContainsFunc(list, func(c HeldInput) bool { return c.Name == v.Name })
	})
	for _, c := range list {
		for _, in := range m.Inputs() {
			if in.Name != c.Name {
				continue
			}
			if err := c.hold(m, in, rest); err != nil {
				return fmt.Errorf("input %q, %s of shape %v: %w", c.Name, strings.ToLower(in.Elem.String()),
					in.Shape, err)
			}
		}
	}
	return nil
}

// hold replaces an input by a constant; rest are the inputs that remain.
func (c HeldInput) hold(m *onnx.Model, in onnx.Value, rest []onnx.Value) error {
	if !in.Known {
		return fmt.Errorf("the file doesn't tell its shape")
	}
	shape := slices.Clone(in.Shape)
	images := ""
	if len(rest) > 0 && len(shape) > 0 && len(rest[0].Shape) > 0 && shape[0] == rest[0].Shape[0] {
		shape[0], images = 1, rest[0].Name
	}
	values, err := c.fill(shape)
	if err != nil {
		return err
	}
	g := m.Proto.Graph
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return v.Name == c.Name })
	f := m.Fragment()
	x := m.Fresh(c.Name + "/constant")
	if realNumbers(in.Elem) {
		single := make([]float32, len(values))
		for i, v := range values {
			single[i] = float32(v)
		}
		g.Initializer = append(g.Initializer, onnx.FloatTensor(x, single, shape...))
	} else {
		whole := make([]int64, len(values))
		for i, v := range values {
			if whole[i] = int64(v); float64(whole[i]) != v {
				return fmt.Errorf("%v is no integer", v)
			}
		}
		g.Initializer = append(g.Initializer, onnx.IntTensor(x, whole, shape...))
	}
	if images != "" {
		if m.Opset() < 8 {
			return fmt.Errorf("the model uses opset %d, and numbers for each image need 8", m.Opset())
		}
		count := f.Op("Gather", []string{f.Op("Shape", []string{images}), f.Ints("first", []int64{0}, 1)})
		of := f.Ints("rest", long(shape[1:]), int64(len(shape)-1))
		all := f.Op("Concat", []string{count, of}, onnx.Attr{Name: "axis", Value: 0})
		x = f.Op("Expand", []string{x, all})
	}
	f.OpTo(c.Name, "Cast", []string{x}, onnx.Attr{Name: "to", Value: int(in.Elem)})
	m.Before(f)
	return nil
}

// fill returns the numbers of a shape: one number for all, or each its own, in C order. It fixes a dimension
// that the shape leaves open by their count.
func (c HeldInput) fill(shape []int) ([]float64, error) {
	open := 0
	for i, d := range shape {
		if d != onnx.Free {
			continue
		}
		if open++; open > 1 {
			return nil, fmt.Errorf("its shape leaves more than one dimension open")
		}
		others := onnx.Size(slices.Delete(slices.Clone(shape), i, i+1))
		shape[i] = max(1, len(c.Values)/max(1, others))
	}
	size := onnx.Size(shape)
	switch {
	case size > maxConstant:
		return nil, fmt.Errorf("it has %d numbers, and the maximum is %d", size, maxConstant)
	case len(c.Values) == size:
		return c.Values, nil
	case len(c.Values) == 1:
		return slices.Repeat(c.Values, size), nil
	}
	return nil, fmt.Errorf("%d numbers are given, and it has %d: one number fills all", len(c.Values), size)
}

// maxConstant limits the numbers of an input that is held constant.
const maxConstant = 1 << 24

func realNumbers(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_DOUBLE,
		onnxpb.TensorProto_BFLOAT16:
		return true
	}
	return false
}
