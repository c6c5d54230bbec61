package program_test

import (
	"os"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// webgpu returns a device of that class, or skips the test.
func webgpu(t *testing.T) stages.Device {
	t.Helper()
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("needs an adapter of WebGPU: set RUNEXP_WEBGPU where there is one")
	}
	return stages.Device{Class: "webgpu"}
}

// TestUsageOnWebGPU holds that ONNX Runtime's profile has every node of a gradient and of a deletion curve
// on the device, of a net with convolutions and pools and of a ViT, and no copy between nodes. What a run
// reads and returns is counted by hand: a gradient's targets and images, its answer, derivative and value;
// a curve's ends, ranks and steps, and its answers.
func TestUsageOnWebGPU(t *testing.T) {
	d := webgpu(t)
	for _, name := range []string{"smallcnn", "timm_vit_op17"} {
		n := modeltest.Net(t, modeltest.Official(t, name, 0))
		r := program.Measuring(d, stagetest.NewSlot())
		if _, err := n.Gradient(t.Context(), r, lower.Question{}, 2); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Curve(t.Context(), r, 2); err != nil {
			t.Fatal(err)
		}
		image, pixels, answer := int64(4*n.Size()), int64(4*n.Height*n.Width), int64(4*n.Classes)
		for k, want := range []program.Usage{
			{Program: "gradient", Inputs: program.Copies{Number: 2, Bytes: 2*answer + 2*image},
				Outputs: program.Copies{Number: 3, Bytes: 2*answer + 4*image}},
			{Program: "curve", Inputs: program.Copies{Number: 4, Bytes: 2*image + pixels + 2*4},
				Outputs: program.Copies{Number: 1, Bytes: 2 * answer}},
		} {
			u := r.Usages[k]
			if u.Name() != want.Program || u.Device != "webgpu:0" || u.Batch != 2 || u.Nodes < 10 {
				t.Errorf("%s: got %+v", name, u)
			}
			if len(u.Fallbacks) > 0 || u.ToHost != (program.Copies{}) || u.FromHost != (program.Copies{}) {
				t.Errorf("%s, %s: the CPU computes %s, with copies %v and %v", name, u.Name(), u.Operators(),
					u.ToHost, u.FromHost)
			}
			if u.Inputs != want.Inputs || u.Outputs != want.Outputs {
				t.Errorf("%s, %s: reads %v and returns %v, want %v and %v", name, u.Name(), u.Inputs,
					u.Outputs, want.Inputs, want.Outputs)
			}
			if !(0 < u.Computing && u.Computing <= u.Run) || u.Cost != 0 {
				t.Errorf("%s, %s: the device computes %g of %g s, cost %g", name, u.Name(), u.Computing,
					u.Run, u.Cost)
			}
		}
		r.Close()
	}
}

// determinants returns a net whose logits are determinants of 128 × 128 pixels, which WebGPU's provider
// lacks: Exp, Det, and the copy of the answer that every program ends with.
func determinants(t *testing.T) stages.Data {
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, Graph: &onnxpb.GraphProto{Name: "determinants"},
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}}}}
	f := m.Fragment()
	f.OpTo("logits", "Det", []string{f.Op("Exp", []string{"images"})})
	m.After(f)
	m.SetInputs(onnx.Value{Name: "images", Elem: onnxpb.TensorProto_FLOAT,
		Shape: []int{onnx.Free, 3, 128, 128}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Kind: "logits"})
}

// TestFallbackOnWebGPU holds that what the provider lacks is computed nevertheless, that its copies are
// counted, and that the user learns once which operator costs what share of the time.
func TestFallbackOnWebGPU(t *testing.T) {
	d := webgpu(t)
	net := determinants(t)
	pixels := make([]uint8, 3*128*128)
	for i := range pixels {
		pixels[i] = uint8(37 * i)
	}
	in := map[string][]stages.Data{"model": {net},
		"images": {stagetest.Items(nil, stages.NewTensor(pixels, 3, 128, 128).Encode())}}
	slot := stagetest.NewSlotOn(d)
	defer stagetest.Release(slot)
	defer program.SetDear(program.SetDear(0)) // whatever else keeps the processor
	var warned []string
	for range 2 {
		got, err := stagetest.TryOn(slot, model.Predict, nil, in)
		if err != nil {
			t.Fatal(err)
		}
		warned = append(warned, got.Warnings...)
	}
	want := "webgpu:0 lacks operators that the program forward needs: what the processor computes instead " +
		"(Det 1), with copies there and back (2 a run), takes "
	if len(warned) != 1 || !strings.HasPrefix(warned[0], want) {
		t.Errorf("warnings %q, want one that begins with %q", warned, want)
	}
	r := program.Measuring(d, stagetest.NewSlot())
	defer r.Close()
	if _, err := modeltest.Net(t, net).Forward(t.Context(), r, 2); err != nil {
		t.Fatal(err)
	}
	u := r.Usages[0]
	if u.Nodes != 3 || u.Operators() != "Det 1" ||
		u.ToHost != (program.Copies{Number: 1, Bytes: 4 * 2 * 3 * 128 * 128}) ||
		u.FromHost != (program.Copies{Number: 1, Bytes: 4 * 2 * 3}) || !(0 < u.Cost && u.Cost < 1) {
		t.Errorf("got %+v", u)
	}
}

// TestDear holds from which share on fallbacks are worth a warning.
func TestDear(t *testing.T) {
	u := program.Usage{Program: `gradient of "" by derivative`, Device: "cuda:1",
		Fallbacks: []program.Fallback{{Operator: "Tan", Nodes: 2}, {Operator: "Celu", Nodes: 1}},
		ToHost:    program.Copies{Number: 3}, FromHost: program.Copies{Number: 2}}
	for cost, want := range map[float64]string{
		0.1: "",
		0.34: "cuda:1 lacks operators that the program gradient needs: what the processor computes instead " +
			"(Tan 2, Celu 1), with copies there and back (5 a run), takes 34% of the time; runexp inspect " +
			"MODEL --devices cuda:1 tells more",
	} {
		u.Cost = cost
		if got := program.Warned(u); got != want {
			t.Errorf("at %g: %q, want %q", cost, got, want)
		}
	}
}
