package lower

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/ort"
)

// rightForms are replacements for operators that a provider computes wrongly: see [ort.Kernels].
//
// WebGPU's kernel of InstanceNormalization has its epsilon in the shader's text, rounded to six digits
// after the point, and reuses the shader of another node with another epsilon. Its kernel of Slice takes
// the elements of a negative step from the axis's last one on, regardless of the slice's start. OpenVINO's
// kernel of HardSigmoid takes an alpha or a beta of 0 for the default, 0.2 or 0.5; with others it is right,
// but takes twice as long as a Clip, which is fused with the nodes around it. It packs the
// weights that several nodes read once, and those of a ConvTranspose are a Conv's with the channels the
// other way round, which shapes don't tell apart if there are as many of both.
var rightForms = map[string]func(s invariant) bool{
	"ConvTranspose":         invariant.ownWeights,
	"HardSigmoid":           invariant.clippedLine,
	"InstanceNormalization": invariant.meansAsProducts,
	"Slice":                 invariant.forwards,
}

// providerForms replaces operators that the program's provider computes wrongly.
func (u *unit) providerForms() error {
	ProviderForms(u.graph, u.batch, u.Kernels)
	return nil
}

// ProviderForms does so in a graph, and reports whether it has replaced any.
func ProviderForms(g *onnx.Graph, batch int, k ort.Kernels) (rewrote bool) {
	if len(k.Wrong) == 0 {
		return false
	}
	return rewriteNodes(g, batch, func(s invariant) bool {
		return slices.Contains(k.Wrong, s.OpType) && rightForms[s.OpType](s)
	})
}

// clippedLine emits a HardSigmoid as a Clip.
func (s invariant) clippedLine() bool {
	alpha, beta := s.Float("alpha", 0.2), s.Float("beta", 0.5)
	x := s.each("Mul", s.In(0), s.number(alpha))
	if beta != 0 {
		x = s.each("Add", x, s.number(beta))
	}
	return s.end("Clip", x, s.number(0), s.number(1))
}

// ownWeights emits a ConvTranspose with weights of its own, if they have as many channels either way: negated
// twice, which has the same bits and is computed when the program is compiled.
func (s invariant) ownWeights() bool {
	w := s.g.Shape(s.In(1))
	if len(w) < 2 || w[1] == 1 || w[0] != w[1]*s.Int("group", 1) {
		return false
	}
	in := slices.Clone(s.Input)
	in[1] = s.op("Neg", w, []string{s.op("Neg", w, []string{s.In(1)})})
	s.f.Copy(s.NodeProto, in)
	return true
}

// forwards emits a Slice with negative steps as one with positive steps, and reverses the result.
func (s invariant) forwards() bool {
	in, out := s.shape(), s.g.Shape(s.Output[0])
	from, known := s.g.Int64s(s.In(1))
	steps, stepped := s.g.Int64s(s.In(4))
	named, some := s.g.Int64s(s.In(3))
	if !known || !stepped || !some && s.In(3) != "" || onnx.Size(out) == 0 {
		return false
	}
	var starts, ends, axes, by, backwards []int64
	for i, start := range from {
		axis := i
		if some {
			axis = int(named[i])
		}
		if axis < 0 {
			axis += len(in)
		}
		d, step := int64(in[axis]), steps[i]
		if start < 0 {
			start += d
		}
		start = min(max(start, 0), d)
		way := step * int64(out[axis]-1) // from the first element to the last
		if step < 0 {
			start, way, step = min(start, d-1)+way, -way, -step
			backwards = append(backwards, int64(axis))
		}
		starts, ends, axes, by = append(starts, start), append(ends, start+way+1), append(axes, int64(axis)),
			append(by, step)
	}
	if backwards == nil {
		return false
	}
	list := func(v ...int64) string { return s.f.Ints("slice", v, int64(len(v))) }
	all := func(v int64) string { return list(slices.Repeat([]int64{v}, len(backwards))...) }
	x := s.op("Slice", out, []string{s.In(0), list(starts...), list(ends...), list(axes...), list(by...)})
	return s.end("Slice", x, all(-1), all(math.MinInt32), list(backwards...), all(-1))
}
