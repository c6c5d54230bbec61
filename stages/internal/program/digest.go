package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

// A Recorder is a slot that records the digest of every program that a stage uses on it.
type Recorder interface {
	stages.Slot
	Record(stages.Digest)
}

// recorderOf returns the slot as a recorder, nil if it is none.
func recorderOf(slot stages.Slot) Recorder {
	if r, ok := slot.(*Rehearsal); ok && !r.exact {
		return nil
	}
	r, _ := slot.(Recorder)
	return r
}

// digestOf returns the digest of a program: of all that its results' bits depend on but the processor and the
// version of ONNX Runtime. That is the expression of each output, the inputs, and the disabled fusions.
// Weights are identified by their contents, those that ONNX Runtime computed by their expressions, so that
// the digest is the same on every processor.
func digestOf(p *lower.Lowered) stages.Digest {
	m := p.Model
	weights := map[string]*onnxpb.TensorProto{}
	for _, t := range m.Proto.Graph.Initializer {
		weights[t.Name] = t
	}
	x := onnx.NewExpressions(m.Proto.Graph.Node, func(v string) onnx.Sum {
		if t := weights[v]; t != nil {
			return m.WeightSum(t)
		}
		return onnx.SumOf([]byte("fed"), []byte(v))
	})
	x.Kernels = true
	parts := [][]byte{[]byte("program 1"), fmt.Append(nil, ort.DisabledFusions(p.Canonical, p.Disabled...))}
	opsets := slices.Clone(m.Proto.OpsetImport)
	slices.SortFunc(opsets,
		func(a, b *onnxpb.OperatorSetIdProto) int { return cmp.Compare(a.Domain, b.Domain) })
	for _, o := range opsets {
		parts = append(parts, fmt.Appendf(nil, "opset %q %d", o.Domain, o.Version))
	}
	for _, f := range m.Proto.Functions {
		parts = append(parts, onnx.Encoded(f))
	}
	for _, v := range p.Inputs {
		parts = append(parts, fmt.Appendf(nil, "fed %q %v", v.Name, v.Shape))
	}
	for _, v := range m.Outputs() {
		s := x.Value(v.Name)
		parts = append(parts, []byte(v.Name), s[:])
	}
	return stages.Digest(onnx.SumOf(parts...))
}

// Stage is [stages.New] for a stage that runs programs of the model on its port model: the digest in its keys
// is that of all programs that it uses in a rehearsal.
func Stage[P any](d stages.Def[P]) stages.Stage {
	var s stages.Stage
	d.Program = func(ctx context.Context, p P, e *stages.Env) (stages.Digest, error) {
		n, err := Load(e)
		if err != nil {
			return stages.Digest{}, err
		}
		r := &Rehearsal{Base: e.Slot, exact: true}
		defer r.Close()
		for _, long := range []bool{false, true} { // what the compiler does may depend on the length
			on := Subject{Spec: n.Spec, Model: e.Ports["model"][0], Long: long}
			if err := r.Rehearse(ctx, &s, &p, on, e.Wired); err != nil {
				return stages.Digest{}, err
			}
			if n.Text == nil || n.Text.Fixed {
				break
			}
		}
		return r.digest()
	}
	if run := d.Run; run != nil {
		d.Run = func(ctx context.Context, p P, e *stages.Env) error {
			some := func(ctx context.Context, parts []stages.Part) error { return run(ctx, p, parts[0].Env) }
			return byLength(ctx, []stages.Part{{Env: e}}, some)
		}
	}
	s = stages.New(d)
	return s
}

// digest returns the digest of all programs that were used.
func (r *Rehearsal) digest() (stages.Digest, error) {
	if len(r.recorded) == 0 {
		return stages.Digest{}, errors.New("a rehearsal asked for no program")
	}
	slices.SortFunc(r.recorded, func(a, b stages.Digest) int { return bytes.Compare(a[:], b[:]) })
	var b []byte
	for _, d := range slices.Compact(r.recorded) {
		b = append(b, d[:]...)
	}
	return stages.Sum(b), nil
}
