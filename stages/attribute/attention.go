package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// tokens are rows of numbers, one for each token, that become the relevance of patches: one row for each
// token that the answer is read off.
type tokens [][]float64

// through returns the rows times a matrix [T, T] plus own times themselves.
func (r tokens) through(matrix []float32, own float64) tokens {
	out := make(tokens, len(r))
	for k, row := range r {
		t := len(row)
		out[k] = make([]float64, t)
		for i, v := range row {
			for j, a := range matrix[i*t : (i+1)*t] {
				out[k][j] += float64(v * float64(a))
			}
			out[k][i] += own * v
		}
	}
	return out
}

// rowsRead returns the rows of the tokens that an answer is read off, of a matrix [T, T].
func rowsRead(a program.Attention, matrix []float32) tokens {
	var out tokens
	for _, k := range a.Read {
		out = append(out, doubles(matrix[k*a.Tokens:(k+1)*a.Tokens]))
	}
	return out
}

// readers returns rows with a one at each of the tokens that an answer is read off.
func readers(a program.Attention) tokens {
	var out tokens
	for _, k := range a.Read {
		row := make([]float64, a.Tokens)
		row[k] = 1
		out = append(out, row)
	}
	return out
}

// look runs a method that makes a map of the attention of each image: explain says what is explained in a row
// of a run, for methods that ask it, and use returns the map of an item that was in a row.
func (c Common) look(ctx context.Context, e *stages.Env, n *program.Net, a program.Attention,
	explain func(i, row int) error, use func(i, row int) (stages.Tensor, error)) error {
	for from := 0; from < e.Len(); from += a.Batch {
		to := min(from+a.Batch, e.Len())
		for i := from; i < to; i++ {
			if explain != nil {
				if err := explain(i, i-from); err != nil {
					return err
				}
			}
			if err := image(e, i, n, a.Image(i-from)); err != nil {
				return err
			}
		}
		if err := a.Run(ctx); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			m, err := use(i, i-from)
			if err != nil {
				return err
			}
			putMap(e, i, m)
		}
	}
	return nil
}

// patches returns a map: the mean of the rows at the patches, which lie on a grid, enlarged bilinearly to the
// image's size.
func (c Common) patches(n *program.Net, a program.Attention, rows tokens) stages.Tensor {
	plane := make([]float64, a.Height*a.Width)
	for _, row := range rows {
		for k := range plane {
			plane[k] += row[a.First+k]
		}
	}
	for k := range plane {
		plane[k] /= float64(len(rows))
	}
	values := resized(plane, a.Height, a.Width, n.Height, n.Width, "bilinear")
	return c.reduced(values, 1, n.Height, n.Width)
}

// startsWithin refuses a first block that a model doesn't have.
func startsWithin(a program.Attention, start int) error {
	if start >= len(a.Blocks) {
		return stages.BadField("start", "start %d: the model has %d blocks, the first of which is 0", start,
			len(a.Blocks))
	}
	return nil
}

// blocks returns the numbers of a model's blocks from start on, the last one first.
func blocks(a program.Attention, start int) []int {
	var out []int
	for k := start; k < len(a.Blocks); k++ {
		out = append(out, k)
	}
	slices.Reverse(out)
	return out
}
