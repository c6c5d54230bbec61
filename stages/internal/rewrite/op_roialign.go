package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// RoiAlign samples half a pixel further from 16 on, by default.
var roiAlign = []converter{{"RoiAlign", 10, 15, func(e *edit, n onnx.Node) error {
	setText(n, "coordinate_transformation_mode", "output_half_pixel")
	e.keep(n)
	return nil
}}}
