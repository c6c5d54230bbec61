package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Tangent adds up the derivatives of the explained number at points of a path of images, each times the
// path's tangent there, as [Path] does for the points of a line, whose tangent is the same everywhere.
type Tangent struct{ *Program }

// Tangent returns the program that answers q at up to batch points at once; its Batch may be smaller, see
// [Net.AtOnce].
func (n *Net) Tangent(ctx context.Context, slot stages.Slot, q lower.Question, batch int) (Tangent, error) {
	p, err := n.questioned(ctx, slot, "tangent", n.AtOnce(ctx, slot, batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs: func(s lower.Shapes) []lower.IO {
			return append(sumInputs(s, n.explained()), lower.In("points", s.ImageShape(s.Batch)...),
				lower.In("tangents", s.ImageShape(s.Batch)...))
		},
		Images: lower.Read("points"),
		Sum:    lower.Plain,
		Times:  lower.Read("tangents"),
	})
	return Tangent{p}, err
}

// Set takes the target, and clears the sum.
func (p Tangent) Set(t Target) { p.begin(t) }

// Point returns the input of row i's image.
func (p Tangent) Point(i int) []float32 { return p.row(3, i) }

// Tangent returns the input of the path's tangent at row i's image.
func (p Tangent) Tangent(i int) []float32 { return p.row(4, i) }

// Run adds the products of the first rows to the sum, each with its weight. [Program.Row] has the answers
// there.
func (p Tangent) Run(ctx context.Context, weights []float64) error { return p.add(ctx, weights) }

// A Blurred does what [Tangent] does on a path of blurred images. A row is given by symmetric matrices: with
// one that blurs columns, K, and one that blurs rows, L, its image is K·x·L, and the tangent is K'·x·M +
// K·x·L' for some slopes K' and L' of K and L; M is L itself for derivatives, and L a step further for
// differences.
type Blurred struct{ *Program }

// Blurred returns the program that answers q at up to batch blurred images at once; its Batch may be smaller,
// see [Net.AtOnce].
func (n *Net) Blurred(ctx context.Context, slot stages.Slot, q lower.Question, batch int) (Blurred, error) {
	p, err := n.questioned(ctx, slot, "blurred", n.AtOnce(ctx, slot, batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs: func(s lower.Shapes) []lower.IO {
			square := func(name string, side int) lower.IO { return lower.In(name, s.Batch, 1, side, side) }
			return append(sumInputs(s, n.explained()), lower.In("image", s.ImageShape(1)...),
				square("columns", n.Height), square("rows", n.Width), square("column_slopes", n.Height),
				square("row_slopes", n.Width), square("rows_ahead", n.Width))
		},
		Images: func(f *onnx.Fragment) string { return between(f, "columns", "rows") },
		Sum:    lower.Plain,
		Times: func(f *onnx.Fragment) string {
			return f.Op("Add", []string{between(f, "column_slopes", "rows_ahead"),
				between(f, "columns", "row_slopes")})
		},
	})
	return Blurred{p}, err
}

// between emits the image between two matrices.
func between(f *onnx.Fragment, left, right string) string {
	return f.Op("MatMul", []string{f.Op("MatMul", []string{"runexp_" + left, "runexp_image"}),
		"runexp_" + right})
}

// Set takes the target and the normalised image, and clears the sum.
func (p Blurred) Set(t Target, image []float32) {
	p.begin(t)
	p.inputs[3].Set(image)
}

// Matrices returns the inputs of row i's matrices: K, L, their slopes, and M.
func (p Blurred) Matrices(i int) (columns, rows, columnSlopes, rowSlopes, rowsAhead []float32) {
	return p.row(4, i), p.row(5, i), p.row(6, i), p.row(7, i), p.row(8, i)
}

// Run adds the products of the first rows to the sum, each with its weight. [Program.Row] has the answers
// there.
func (p Blurred) Run(ctx context.Context, weights []float64) error { return p.add(ctx, weights) }
