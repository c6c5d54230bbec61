package lower_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

// A formed is a model of one node, from x [2,3,5,4] to y, or of several.
type formed struct {
	op     string
	nodes  []*onnxpb.NodeProto
	types  map[string]onnx.Type  // of values between nodes
	given  []*onnxpb.TensorProto // its inputs behind x
	attrs  []onnx.Attr
	out    []int
	stays  bool // no provider computes it wrongly
	within float64
}

// formedOnes are InstanceNormalizations with unlike epsilons, and Slices in every direction.
func formedOnes() (list []formed) {
	for _, epsilon := range []float32{1e-5, 0.25, 1e-8} {
		list = append(list, formed{op: "InstanceNormalization", out: []int{2, 3, 5, 4}, within: 1e-5,
			given: []*onnxpb.TensorProto{onnx.FloatTensor("scale", []float32{1, -2, 0.5}, 3),
				onnx.FloatTensor("shift", []float32{0, 1, -1}, 3)},
			attrs: []onnx.Attr{{Name: "epsilon", Value: epsilon}}})
	}
	r := rand.New(rand.NewPCG(3, 29))
	for range 60 {
		in, out := []int{2, 3, 5, 4}, []int{2, 3, 5, 4}
		axes := r.Perm(4)[:1+r.IntN(3)]
		var starts, ends, on, steps []int
		back := false
		for _, a := range axes {
			first := r.IntN(in[a])
			last := r.IntN(in[a])
			step := 1 + r.IntN(3)
			end := last + 1
			if first > last || first == last && r.IntN(2) == 0 {
				if step, end, back = -step, last-1, true; end < 0 {
					end = -1 << 31
				}
			}
			out[a] = (max(first, last)-min(first, last))/max(step, -step) + 1
			if r.IntN(2) == 0 { // counted from behind
				first -= in[a]
			}
			if r.IntN(2) == 0 {
				a -= 4
			}
			starts, ends = append(starts, first), append(ends, end)
			on, steps = append(on, a), append(steps, step)
		}
		ints := func(name string, v []int) *onnxpb.TensorProto { return onnx.IntTensor(name, v, len(v)) }
		list = append(list, formed{op: "Slice", out: out, stays: !back, given: []*onnxpb.TensorProto{
			ints("starts", starts), ints("ends", ends), ints("axes", on), ints("steps", steps)}})
	}
	return list
}

// graph returns the model.
func (f formed) graph(t *testing.T) *onnx.Graph {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph:       &onnxpb.GraphProto{Name: "g", Initializer: f.given}}}
	in := []string{"x"}
	for _, w := range f.given {
		in = append(in, w.Name)
	}
	m.Proto.Graph.Node = f.nodes
	if f.nodes == nil {
		m.Proto.Graph.Node = []*onnxpb.NodeProto{onnx.NewNode("node", f.op, in, []string{"y"}, f.attrs...)}
	}
	float := onnxpb.TensorProto_FLOAT
	shape := []int{2, 3, 5, 4}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: shape, Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: float})
	types := map[string]onnx.Type{"x": {Elem: float, Shape: shape}, "y": {Elem: float, Shape: f.out}}
	maps.Copy(types, f.types)
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// on returns what a graph makes of x on a device.
func on(t *testing.T, d stages.Device, g *onnx.Graph, x []float32, out []int) []float32 {
	t.Helper()
	r := modeltest.Runtime(t)
	b, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewSession(b, []string{"x"}, []string{"y"}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	from, err := ort.NewTensor[float32](r, 2, 3, 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	copy(from.Data, x)
	to, err := ort.NewTensor[float32](r, out...)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := s.Run(context.Background(), []ort.Value{from}, []ort.Value{to}); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(to.Data)
}

// sample is a value of x.
func sample() []float32 {
	x := make([]float32, 2*3*5*4)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)*1.7))*0.1 + float32(i%7)*0.01
	}
	return x
}

// checkForms compares the forms for WebGPU, on a device, with the nodes that they are emitted for, on the
// processor.
func checkForms(t *testing.T, d stages.Device) {
	t.Helper()
	x := sample()
	for _, f := range formedOnes() {
		name := fmt.Sprintf("%s %v to %v", f.op, f.attrs, f.out)
		g := f.graph(t)
		want := on(t, stages.Device{Class: "cpu", Threads: 1}, g, x, f.out)
		if rewrote := lower.ProviderForms(g, 2, ort.ProviderOf("webgpu").Kernels); rewrote == f.stays {
			t.Errorf("%s: emitted otherwise: %t", name, rewrote)
			continue
		}
		for i, v := range on(t, d, g, x, f.out) {
			if math.Abs(float64(v-want[i])) > f.within*2 {
				t.Errorf("%s: element %d is %g, not %g", name, i, v, want[i])
				break
			}
		}
	}
}

// TestProviderForms holds that the forms compute the same, and that those for the processor are the nodes
// themselves.
func TestProviderForms(t *testing.T) {
	modeltest.Runtime(t)
	checkForms(t, stages.Device{Class: "cpu", Threads: 1})
	for _, f := range formedOnes() {
		if lower.ProviderForms(f.graph(t), 2, ort.ProviderOf("cpu").Kernels) {
			t.Errorf("%s is emitted otherwise for the processor", f.op)
		}
	}
}

// TestProviderFormsOnWebGPU holds the same on WebGPU, where the nodes themselves are wrong.
func TestProviderFormsOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	checkForms(t, stages.Device{Class: "webgpu"})
}

// inBFloat16 are a step, a line through 0 that is clipped, and convolutions there and back by the same
// weights, whose product with others is in bfloat16 as well.
func inBFloat16() []formed {
	attr := func(name string, v float32) onnx.Attr { return onnx.Attr{Name: name, Value: v} }
	shape := []int{2, 3, 5, 4}
	list := []formed{
		{op: "HardSigmoid", out: shape, attrs: []onnx.Attr{attr("alpha", math.MaxFloat32), attr("beta", 0)}},
		{op: "HardSigmoid", out: shape, attrs: []onnx.Attr{attr("alpha", 2), attr("beta", 0)}},
		{op: "HardSigmoid", out: shape, attrs: []onnx.Attr{attr("alpha", 0), attr("beta", 0.25)}},
	}
	float := onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	pads := onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}}
	for _, group := range []int{1, 3} {
		list = append(list, formed{op: "ConvTranspose", out: shape, stays: group == 3,
			given: []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3/group, 3, 3),
				modeltest.Noise("u", 0.3, 3, 3, 1, 1)},
			types: map[string]onnx.Type{"there": float, "back": float},
			nodes: []*onnxpb.NodeProto{
				onnx.NewNode("there", "Conv", []string{"x", "w"}, []string{"there"}, pads,
					onnx.Attr{Name: "group", Value: group}),
				onnx.NewNode("back", "ConvTranspose", []string{"there", "w"}, []string{"back"}, pads,
					onnx.Attr{Name: "group", Value: group}),
				onnx.NewNode("mixed", "Conv", []string{"back", "u"}, []string{"y"}),
			}})
	}
	return list
}

// TestProviderFormsInBFloat16 holds that OpenVINO computes the forms as a processor does in float32 the
// nodes, up to rounding, and the nodes wrongly, so that forms aren't kept for a kernel that was repaired.
func TestProviderFormsInBFloat16(t *testing.T) {
	d := stages.Device{Class: "cpu", Threads: 1, Precision: stages.BFloat16}
	kernels := ort.ProviderOf("cpu").KernelsIn(stages.BFloat16)
	has := modeltest.Runtime(t).Has(d)
	x := sample()
	for _, f := range inBFloat16() {
		name := fmt.Sprintf("%s %v", f.op, f.attrs)
		g := f.graph(t)
		want := on(t, stages.Device{Class: "cpu", Threads: 1}, g, x, f.out)
		largest := math.Abs(float64(slices.MaxFunc(want, func(a, b float32) int {
			return cmp.Compare(math.Abs(float64(a)), math.Abs(float64(b)))
		})))
		off := func(d stages.Device) (worst float64) {
			for i, v := range on(t, d, g, x, f.out) {
				worst = max(worst, math.Abs(float64(v-want[i]))/largest)
			}
			return worst
		}
		if has == nil {
			if worst := off(d); worst < 0.1 && !f.stays {
				const text = "%s: the kernel is off by %.2g only: strike it from the row of bfloat16"
				t.Errorf(text, name, worst)
			}
		}
		if rewrote := lower.ProviderForms(g, 2, kernels); rewrote == f.stays {
			t.Errorf("%s: emitted otherwise: %t", name, rewrote)
		}
		if worst := off(stages.Device{Class: "cpu", Threads: 1}); worst > 1e-6 {
			t.Errorf("%s: the form is off by %.2g in float32", name, worst)
		}
		if has == nil {
			if worst := off(d); worst > 0.03 {
				t.Errorf("%s: the form is off by %.2g", name, worst)
			}
		}
	}
	if has != nil {
		t.Skipf("skipped in bfloat16: %v", has)
	}
}
