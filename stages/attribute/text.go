package attribute

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// hiddenTexts returns each text with all its tokens hidden, except for the special ones.
func hiddenTexts(e *stages.Env, n *program.Net, baseline string) (out baselines, err error) {
	x := make([]float32, n.Size())
	for i := range e.Len() {
		if err := image(e, i, n, x); err != nil {
			return nil, err
		}
		hidden := make([]float32, n.Size())
		if err := hideWords(e, i, n, "baseline", baseline, x, hidden); err != nil {
			return nil, err
		}
		out = append(out, hidden)
	}
	return out, nil
}

// hideWords writes the text x of item i into dst, with the tokens hidden that aren't special, as the
// parameter field says.
func hideWords(e *stages.Env, i int, n *program.Net, field, token string, x, dst []float32) error {
	id, err := n.TextID(field, token)
	if err != nil {
		return err
	}
	t, err := program.TokensOf(e, i)
	if err != nil {
		return err
	}
	t.Hidden(id, x, dst)
	return nil
}

// checkLengths returns an error for a text on a port that has other tokens than the one on the port images.
func checkLengths(port string, e *stages.Env) error {
	for i := range e.Len() {
		own, err := program.TokensOf(e, i)
		if err != nil {
			return err
		}
		m, err := stages.DecodeTensor(e.In(port, i))
		var other modelfile.Tokenised
		if err == nil {
			other, err = modelfile.TokensOf(m)
		}
		if err == nil && other.Len() != own.Len() {
			err = fmt.Errorf("%d tokens, and the text that they are compared with has %d: give as many",
				other.Len(), own.Len())
		}
		if err != nil {
			return fmt.Errorf("item %q: port %s: %w", e.Calls[i].ID, port, err)
		}
	}
	return nil
}

// withoutWords returns the embeddings of texts with zeros for their tokens, except for the special ones.
func withoutWords(e *stages.Env, n *program.Net, embeddings [][]float32) (baselines, error) {
	out := make(baselines, len(embeddings))
	for i, x := range embeddings {
		t, err := program.TokensOf(e, i)
		if err != nil {
			return nil, err
		}
		out[i] = slices.Clone(x)
		size := len(x) / n.Width
		for k, special := range t.Special {
			if !special {
				clear(out[i][k*size : (k+1)*size])
			}
		}
	}
	return out, nil
}

// ownTokens returns the part of a layer's value for item i that isn't padding, all of it for an image.
func ownTokens(e *stages.Env, i int, n *program.Net, value []float32) []float32 {
	if n.Text == nil {
		return value
	}
	t, err := program.TokensOf(e, i)
	if err != nil {
		return value
	}
	return value[:len(value)/n.Width*t.Len()]
}

// own returns the planes of item i without padding.
func (p planes) own(e *stages.Env, i int, n *program.Net) planes {
	t, err := program.TokensOf(e, i)
	if n.Text == nil || err != nil {
		return p
	}
	out := planes{nil, p.channels, 1, t.Len()}
	for c := range p.channels {
		out.values = append(out.values, p.channel(c)[:t.Len()]...)
	}
	return out
}

// columns returns the first columns of a map.
func columns(m stages.Tensor, n int) stages.Tensor {
	width := m.Shape[len(m.Shape)-1]
	if n >= width {
		return m
	}
	out := stages.Tensor{DType: m.DType, Shape: slices.Clone(m.Shape)}
	out.Shape[len(m.Shape)-1] = n
	size := m.DType.Size()
	for row := range slices.Chunk(m.Raw, width*size) {
		out.Raw = append(out.Raw, row[:n*size]...)
	}
	return out
}

// cancels is the share of the magnitudes below which the sum of a token's components is rounding noise.
const cancels = 1e-5

// warnCancelled warns of a text whose map has nothing but sums that cancel, as those of a derivative do
// before a LayerNormalization.
func (c Common) warnCancelled(e *stages.Env, i int, at planes) {
	if c.Reduce != metric.Sum && c.Reduce != metric.AbsSum {
		return
	}
	t, err := program.TokensOf(e, i)
	if err != nil {
		return
	}
	largest, magnitude := 0.0, 0.0
	for k := range t.Len() {
		sum, size := 0.0, 0.0
		for channel := range at.channels {
			v := at.channel(channel)[k]
			sum += v
			size += math.Abs(v)
		}
		largest, magnitude = max(largest, math.Abs(sum)), max(magnitude, size)
	}
	if largest <= cancels*magnitude && magnitude > 0 {
		e.WarnItem(i, "the components of each token sum to 0 but for rounding, as those of derivatives "+
			"before a LayerNormalization do: reduce: sum-abs adds their magnitudes")
	}
}
