package attribute

import (
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// tokens are rows of one number per token, one row for each token that the model reads its output from.
type tokens [][]float64

// times returns the rows multiplied by a matrix [T, T], plus the rows multiplied by residual.
func (r tokens) times(matrix []float32, residual float64) tokens {
	out := make(tokens, len(r))
	for k, row := range r {
		t := len(row)
		out[k] = make([]float64, t)
		for i, v := range row {
			for j, a := range matrix[i*t : (i+1)*t] {
				out[k][j] += float64(v * float64(a))
			}
			out[k][i] += residual * v
		}
	}
	return out
}

// readRows returns the rows of a matrix [T, T] that belong to the tokens the output is read from.
func readRows(a program.Attention, matrix []float32) tokens {
	var out tokens
	for _, k := range a.Read {
		out = append(out, doubles(matrix[k*a.Tokens:(k+1)*a.Tokens]))
	}
	return out
}

// ofItem returns the attention with the tokens that the output is read from for item i: a text's own.
func ofItem(a program.Attention, e *stages.Env, i int) program.Attention {
	if t, err := program.TokensOf(e, i); err == nil {
		a.Read = slices.DeleteFunc(slices.Clone(a.Read), func(k int) bool { return k >= t.Len() })
	}
	return a
}

// unitRows returns, for each token that the output is read from, a row with a one at that token.
func unitRows(a program.Attention) tokens {
	var out tokens
	for _, k := range a.Read {
		row := make([]float64, a.Tokens)
		row[k] = 1
		out = append(out, row)
	}
	return out
}

// patches returns a map: the mean of the rows at the patches, which form a grid, enlarged bilinearly to the
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

// startsWithin refuses a first block beyond the model's last.
func startsWithin(a program.Attention, start int) error {
	if start >= len(a.Blocks) {
		return stages.BadField("start", "start %d: the model has %d blocks, the first of which is 0", start,
			len(a.Blocks))
	}
	return nil
}

// blocks returns the indices of the blocks from start on, the last one first.
func blocks(a program.Attention, start int) []int {
	var out []int
	for k := start; k < len(a.Blocks); k++ {
		out = append(out, k)
	}
	slices.Reverse(out)
	return out
}
