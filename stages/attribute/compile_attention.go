package attribute

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// An attended is the attention of a batch, or what else a glance returns, as nodes.
type attended struct {
	relevance.Attention
	m  *emission
	in standalone.Included
}

// attend emits the attention of the images, or derivatives of the output that c explains with respect to it.
func (m *emission) attend(what lower.Glance, c Common, by Balanced) (attended, error) {
	q, err := by.atImage(m.ctx, m.env, m.net, c)
	if err != nil {
		return attended{}, err
	}
	found, l, err := m.net.LowerAttention(m.ctx, m.Slot, m.Batch, what, q)
	if err != nil {
		return attended{}, err
	}
	return attended{found, m, m.include(l, map[string]string{"images": m.images, "targets": m.weights})}, nil
}

// matrix returns a block's matrix, [batch, T, T], of a head if there is one for each.
func (a attended) matrix(block, head int) (standalone.Numbers, error) {
	all := a.m.Double(a.in.Output(fmt.Sprintf("block%d", block)))
	heads := all.Shape[1]
	if head >= heads {
		return all, stages.BadField("head", "head %d: block %d has %d heads, the first of which is 0", head,
			block, heads)
	}
	return all.Slice(1, head, head+1).Sum(1), nil
}

// read returns the rows of a matrix that belong to the tokens the output is read from.
func (a attended) read(matrix standalone.Numbers) standalone.Numbers {
	return matrix.Rows(1, a.Read...)
}

// units returns, for each token that the output is read from, a row with a one at that token.
func (a attended) units() standalone.Numbers {
	rows := slices.Concat(unitRows(program.Attention{Attention: a.Attention})...)
	return a.m.Constant(rows, 1, len(a.Read), a.Tokens)
}

// patches emits the map of rows, as [Common.patches].
func (a attended) patches(c Common, rows standalone.Numbers) standalone.Numbers {
	return a.oneChannel(c, a.enlarged(rows.KeepMean(1)))
}

// enlarged emits rows [batch, 1, T] at the patches, enlarged to the image's size.
func (a attended) enlarged(rows standalone.Numbers) standalone.Numbers {
	return a.plane(rows.Slice(2, a.First, a.First+a.Height*a.Width))
}

// plane emits values at the patches, enlarged to the image's size.
func (a attended) plane(patches standalone.Numbers) standalone.Numbers {
	return a.m.resized(patches.Reshape(a.m.Batch, a.Height, a.Width), "bilinear")
}

// oneChannel emits the map of one channel, as [Common.reduced].
func (a attended) oneChannel(c Common, x standalone.Numbers) standalone.Numbers {
	x = single(c.Reduce, x)
	if c.Reduce == "none" {
		return x.Reshape(a.m.Batch, 1, a.m.net.Height, a.m.net.Width)
	}
	return x
}

// within refuses a first block beyond the last.
func (a attended) within(start int) error {
	return startsWithin(program.Attention{Attention: a.Attention}, start)
}

// from returns the indices of the blocks from start on, the last one first.
func (a attended) from(start int) []int {
	return blocks(program.Attention{Attention: a.Attention}, start)
}

// along emits rows multiplied by matrices plus the identity, block by block.
func (a attended) along(rows standalone.Numbers, order []int, normalise bool) (standalone.Numbers, error) {
	for _, k := range order {
		matrix, err := a.matrix(k, 0)
		if err != nil {
			return rows, err
		}
		if normalise { // by the sums of the rows of I + matrix
			sums := matrix.Sum(2).Plus(a.m.Number(1))
			rows = rows.Over(sums.Reshape(a.m.Batch, 1, a.Tokens))
		}
		rows = rows.MatMul(matrix).Plus(rows)
	}
	return rows, nil
}

func (p RawAttentionParams) emit(m *emission) (out standalone.Numbers, err error) {
	what := lower.Heads
	if p.Head >= 0 {
		what = lower.EachHead
	}
	a, err := m.attend(what, p.Common, Balanced{})
	if err != nil {
		return out, err
	}
	block, err := p.blockOf(len(a.Blocks))
	if err != nil {
		return out, err
	}
	matrix, err := a.matrix(block, max(p.Head, 0))
	if err != nil {
		return out, err
	}
	return a.patches(p.Common, a.read(matrix)), nil
}

func (p AttentionRolloutParams) emit(m *emission) (out standalone.Numbers, err error) {
	a, err := m.attend(lower.Heads, p.Common, Balanced{})
	if err != nil {
		return out, err
	}
	if err := a.within(p.Start); err != nil {
		return out, err
	}
	order := a.from(p.Start)
	if p.Order == "first-last" {
		slices.Reverse(order)
	}
	rows, err := a.along(a.units(), order, p.Normalise)
	if err != nil {
		return out, err
	}
	return a.patches(p.Common, rows), nil
}

func (p TIBAVParams) emit(m *emission) (out standalone.Numbers, err error) {
	a, err := m.attend(p.glance(), p.Common, p.Balanced)
	if err != nil {
		return out, err
	}
	if err := a.within(p.Start); err != nil {
		return out, err
	}
	switch p.Form {
	case "full":
		return reduction(p.Reduce, m.Double(a.in.Output("pixels"))), nil
	case "last-layer":
		last, err := a.matrix(0, 0)
		if err != nil {
			return out, err
		}
		return a.patches(p.Common, a.read(last)), nil
	}
	rows, err := a.along(a.units(), a.from(p.Start), false)
	if err != nil {
		return out, err
	}
	return a.patches(p.Common, rows), nil
}

func (p TransitionAttentionParams) emit(m *emission) (out standalone.Numbers, err error) {
	a, err := m.attend(lower.Heads, p.Common, Balanced{})
	if err != nil {
		return out, err
	}
	if err := a.within(p.Start); err != nil {
		return out, err
	}
	last, err := a.matrix(len(a.Blocks)-1, 0)
	if err != nil {
		return out, err
	}
	rows, err := a.along(a.read(last), a.from(p.Start)[1:], false)
	if err != nil {
		return out, err
	}
	slopes, err := p.slopes(m)
	if err != nil {
		return out, err
	}
	heads := slopes.Shape[1]
	weights := slopes.Rows(2, a.Read...).Over(m.Number(float64(p.Steps))).Relu()
	weights = weights.Over(m.Number(float64(heads))).Sum(1)
	return a.patches(p.Common, rows.Times(weights)), nil
}

// slopes emits the sum of the derivatives with respect to the last block's attention, [batch, heads, T, T],
// at images that grow out of zero.
func (p TransitionAttentionParams) slopes(m *emission) (standalone.Numbers, error) {
	q, err := p.atImage(m.ctx, m.env, m.net, p.Common)
	if err != nil {
		return standalone.Numbers{}, err
	}
	_, l, err := m.net.LowerAttention(m.ctx, m.Slot, m.Batch, lower.Slopes, q)
	if err != nil {
		return standalone.Numbers{}, err
	}
	sum := standalone.State{Shape: l.Outputs[0].Shape, Elem: onnxpb.TensorProto_DOUBLE}
	names := m.Scan([]standalone.State{sum}, []standalone.Single{m.column(p.alphas())},
		func(before []string, of []standalone.Single) []string {
			image := m.Op("Mul", []string{m.images, of[0].Name})
			in := m.Include(l, map[string]string{"images": image, "targets": m.weights})
			slope := m.Double(in.Output(l.Outputs[0].Name))
			return []string{m.Numbers(before[0], sum.Shape...).Plus(slope).Name}
		})
	return m.Numbers(names[0], sum.Shape...), nil
}
