package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// GridSample was introduced in opset 16, and its modes were renamed at 20, which also allows other ranks
// than 4: it reads an image between its pixels (Jaderberg et al. 2015, equation 5). The pixels around a
// position are gathered, each weighted by its closeness. Modes other than linear stay.
var gridSample = []converter{{"GridSample", 16, Newest, func(e *edit, n onnx.Node) error {
	shape, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	grid, err := e.fixed(n.In(1))
	if err != nil {
		return err
	}
	mode, padding := n.Text("mode", "linear"), n.Text("padding_mode", "zeros")
	if len(shape) != 4 || len(grid) != 4 || grid[3] != 2 {
		return fmt.Errorf("only images are supported, of two axes")
	}
	if mode != "linear" && mode != "bilinear" || padding == "reflection" {
		if old, ok := map[string]string{"linear": "bilinear", "cubic": "bicubic"}[mode]; ok {
			setText(n, "mode", old)
		}
		e.keep(n)
		return nil
	}
	hint, count := n.Output[0], grid[1]*grid[2]
	batch, channels, height, width := shape[0], shape[1], shape[2], shape[3]
	op := func(op string, in ...string) string { return e.op(hint, op, in) }
	number := func(v float32) string { return e.scalar(hint+"/number", v) }
	// near returns the pixels on both sides along an axis, and their weights.
	near := func(g string, size int) (pixel, weight [2]string) {
		last := float32(size - 1)
		scale := float32(size) / 2
		if n.Int("align_corners", 0) != 0 {
			scale = last / 2
		}
		at := op("Add", op("Mul", e.reshape(hint, g, batch, 1, count), number(scale)), number(last/2))
		if padding == "border" {
			at = op("Clip", at, number(0), number(last))
		}
		floor := op("Floor", at)
		further := op("Sub", at, floor)
		weight = [2]string{op("Sub", number(1), further), further}
		for i, p := range []string{floor, op("Add", floor, number(1))} {
			pixel[i] = op("Clip", p, number(0), number(last))
			if padding == "zeros" {
				inside := e.op(hint, "Cast", []string{op("Equal", pixel[i], p)},
					onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
				weight[i] = op("Mul", weight[i], inside)
			}
		}
		return pixel, weight
	}
	g := e.split(hint, n.In(1), 3, 1, 1)
	column, across := near(g[0], width)
	row, down := near(g[1], height)
	image := e.reshape(hint, n.In(0), batch, channels, height*width)
	sum := ""
	for i := range 2 {
		for k := range 2 {
			index := e.op(hint, "Cast", []string{op("Add", op("Mul", row[i], number(float32(width))),
				column[k])}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_INT64)})
			index = op("Expand", index, e.ints(hint+"/shape", batch, channels, count))
			pixels := e.op(hint, "GatherElements", []string{image, index}, onnx.Attr{Name: "axis", Value: 2})
			part := op("Mul", pixels, op("Mul", down[i], across[k]))
			if sum == "" {
				sum = part
			} else {
				sum = op("Add", sum, part)
			}
		}
	}
	e.reshapeTo(hint, sum, batch, channels, grid[1], grid[2])
	return nil
}}}
