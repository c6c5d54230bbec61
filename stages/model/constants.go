package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A heldInput is an input that is held constant.
type heldInput struct {
	name   string
	values []float64
}

// parseConstant reads NAME=NUMBERS.
func parseConstant(text string) (c heldInput, err error) {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return c, fmt.Errorf("%q isn't an input and its numbers: NAME=NUMBER, or NAME=NUMBER, NUMBER, …", text)
	}
	c.name = strings.TrimSpace(text[:at])
	for part := range strings.SplitSeq(text[at+1:], ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return c, fmt.Errorf("%q: %q is no number", text, strings.TrimSpace(part))
		}
		c.values = append(c.values, v)
	}
	return c, nil
}

// parsedConstants reads the parameter constants.
func (p ONNXParams) parsedConstants() (out []heldInput, err error) {
	for _, text := range p.Constants {
		c, err := parseConstant(text)
		if err != nil {
			return nil, stages.BadField("constants", "constants: %w", err)
		}
		if slices.ContainsFunc(out, func(o heldInput) bool { return o.name == c.name }) {
			return nil, stages.BadField("constants", "constants: input %q is given twice", c.name)
		}
		out = append(out, c)
	}
	return out, nil
}

// holdConstant makes inputs of a model constants. Those whose first axis is that of the images get the same
// numbers for every image.
func holdConstant(m *onnx.Model, p ONNXParams) error {
	list, err := p.parsedConstants()
	if err != nil {
		return err
	}
	for _, c := range list {
		inputs := m.Inputs()
		i := slices.IndexFunc(inputs, func(v onnx.Value) bool { return v.Name == c.name })
		if i < 0 {
			var names []string
			for _, v := range inputs {
				names = append(names, v.Name)
			}
			return stages.BadName("constants", c.name, names, "constants: the model has no input %q; it has %s",
				c.name, strings.Join(names, ", "))
		}
		rest := slices.DeleteFunc(slices.Clone(inputs), func(v onnx.Value) bool {
			return slices.ContainsFunc(list, func(o heldInput) bool { return o.name == v.Name })
		})
		if err := c.hold(m, inputs[i], rest); err != nil {
			return stages.BadField("constants", "constants: input %q, %s of shape %v: %w", c.name,
				typeName(inputs[i].Elem), inputs[i].Shape, err)
		}
	}
	return nil
}

// hold replaces an input by a constant; rest are the inputs that remain.
func (c heldInput) hold(m *onnx.Model, in onnx.Value, rest []onnx.Value) error {
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
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return v.Name == c.name })
	f := m.Fragment()
	x := m.Fresh(c.name + "/constant")
	if floating(in.Elem) {
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
		of := f.Ints("rest", int64s(shape[1:]), int64(len(shape)-1))
		all := f.Op("Concat", []string{count, of}, onnx.Attr{Name: "axis", Value: 0})
		x = f.Op("Expand", []string{x, all})
	}
	f.OpTo(c.name, "Cast", []string{x}, onnx.Attr{Name: "to", Value: int(in.Elem)})
	m.Before(f)
	return nil
}

// fill returns the numbers of a shape: one number for all, or each its own, in C order. It fixes a dimension
// that the shape leaves open by their count.
func (c heldInput) fill(shape []int) ([]float64, error) {
	open := 0
	for i, d := range shape {
		if d != onnx.Free {
			continue
		}
		if open++; open > 1 {
			return nil, fmt.Errorf("its shape leaves more than one dimension open")
		}
		others := onnx.Size(slices.Delete(slices.Clone(shape), i, i+1))
		shape[i] = max(1, len(c.values)/max(1, others))
	}
	size := onnx.Size(shape)
	switch {
	case size > maxConstant:
		return nil, fmt.Errorf("it has %d numbers, and the maximum is %d", size, maxConstant)
	case len(c.values) == size:
		return c.values, nil
	case len(c.values) == 1:
		return slices.Repeat(c.values, size), nil
	}
	return nil, fmt.Errorf("%d numbers are given, and it has %d: one number fills all", len(c.values), size)
}

// maxConstant limits the numbers of an input that is held constant.
const maxConstant = 1 << 24

func int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}
