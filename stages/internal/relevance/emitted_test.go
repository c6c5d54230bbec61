package relevance

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/ort"
)

// onGPUs are the operators that backward passes add for GPUs. ONNX Runtime lists CUDA's kernels in
// docs/OperatorKernels.md, and WebGPU's in webgpu_execution_provider.cc: look there before you add an
// operator. If a provider lacks it, its row lists it, and others are emitted where [Builder.lacks] does:
// WebGPU lacks FusedMatMul, LogSoftmax and Sign.
var onGPUs = []string{
	"Abs", "Add", "And", "Cast", "Concat", "ConstantOfShape", "Conv", "ConvTranspose", "Cos", "Div",
	"Equal", "Exp", "Expand", "FusedMatMul", "Gather", "GatherElements", "GatherND", "Greater",
	"HardSigmoid", "Identity", "Less", "Log", "LogSoftmax", "MatMul", "Max", "Min", "Mul", "Neg", "Pad",
	"Pow", "Reciprocal", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ScatterElements", "ScatterND",
	"Sigmoid", "Sign", "Sin", "Slice", "Sqrt", "Sub", "Transpose", "Where",
}

// TestEmittedOperators holds that list: for no GPU a rule emits an operator that isn't in it, or that the
// provider lacks, but for copies of the model's own node.
func TestEmittedOperators(t *testing.T) {
	library(t)
	used := map[string]bool{}
	for _, class := range stages.DeviceClasses[1:] {
		p := ort.ProviderOf(class)
		for _, op := range differentiable() {
			for _, ex := range op.Examples {
				for _, rule := range everyRule(t, op, ex) {
					b, err := prepareOn(t, op, ex, rule, cpu, without(class))
					if err != nil {
						continue // the rule refuses the operator
					}
					b.close()
					m, err := onnx.Parse(b.model)
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range m.Proto.Graph.Node {
						switch {
						case n.OpType == op.Type:
						case slices.Contains(p.Lacks, n.OpType):
							t.Errorf("%s, %s, by %s: %s is emitted, which %s lacks", op.Type, ex.Name,
								rule.Name, n.OpType, p.Name)
						default:
							used[n.OpType] = true
						}
					}
				}
			}
		}
	}
	for o := range used {
		if !slices.Contains(onGPUs, o) {
			t.Errorf("%s is emitted, and not listed", o)
		}
	}
	for _, o := range onGPUs {
		if !used[o] {
			t.Errorf("%s is listed, and isn't emitted", o)
		}
	}
}
