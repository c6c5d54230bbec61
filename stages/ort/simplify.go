package ort

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// ruleDependent are the fusions that [Runtime.Simplify] disables: some attribution rules treat a
// normalisation or a scaling differently from the layer before it, and a Relu differently from a Clip.
var ruleDependent = []string{"ConvBNFusion", "ConvMulFusion", "FuseReluClip",
	"MatMul_BatchNormalization_Fusion"}

// disable is the session entry that names disabled fusions.
const disable = "optimization.disable_specified_optimizers"

// maxModel is the largest size of a protobuf message.
const maxModel = math.MaxInt32

// Simplify returns a model that computes the same with fewer nodes: constants are folded, and nodes without
// effect are removed; the more of the input's shape is known, the more. BatchNormalization isn't fused with
// the layer before it, and the fusions in disabled are switched off. If the library can't load the model,
// the error is the library's.
func (r *Runtime) Simplify(model []byte, disabled ...string) ([]byte, error) {
	if r.worker != nil {
		reply, err := r.worker.call(context.Background(),
			&message{Do: doSimplify, Disabled: disabled, blobs: [][]byte{model}})
		if err != nil {
			return nil, err
		}
		return reply.blobs[0], nil
	}
	f, path, remove, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	o, err := cpuOptions(
		func(o *onnxruntime.SessionOptions) error {
			return o.SetGraphOptimizationLevel(onnxruntime.GraphOptimizationLevelEnableBasic)
		},
		func(o *onnxruntime.SessionOptions) error { return o.SetOptimizedModelFilePath(path) },
		func(o *onnxruntime.SessionOptions) error {
			return o.AddSessionConfigEntry(disable, strings.Join(slices.Concat(ruleDependent, disabled), ";"))
		},
	)
	if err != nil {
		return nil, err
	}
	defer o.Destroy()
	// The wrapper requires names, and looks them up only when the session runs.
	s, err := onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, []string{"input"}, []string{"output"},
		o)
	if err != nil {
		return nil, explain(err)
	}
	if err := s.Destroy(); err != nil {
		return nil, err
	}
	b, err := stages.ReadAll(f, maxModel)
	if err == nil && len(b) == 0 {
		err = errors.New("ONNX Runtime wrote no simplified model")
	}
	return b, err
}

// An Info is the type and the shape that the library infers for an output.
type Info struct {
	Name string
	Elem int   // ONNX's number of the element type
	Dims []int // -1 if it can't be inferred
}

// Outputs infers the types and shapes of a model's outputs, without running it.
func (r *Runtime) Outputs(model []byte) ([]Info, error) {
	if r.worker != nil {
		reply, err := r.worker.call(context.Background(), &message{Do: doOutputs, blobs: [][]byte{model}})
		if err != nil {
			return nil, err
		}
		return reply.Infos, nil
	}
	f, path, remove, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	if _, err := f.Write(model); err != nil {
		return nil, err
	}
	o, err := cpuOptions(func(o *onnxruntime.SessionOptions) error {
		return o.SetGraphOptimizationLevel(onnxruntime.GraphOptimizationLevelDisableAll)
	})
	if err != nil {
		return nil, err
	}
	defer o.Destroy()
	_, outputs, err := onnxruntime.GetInputOutputInfoWithOptions(path, o)
	if err != nil {
		return nil, explain(err)
	}
	infos := make([]Info, len(outputs))
	for i, v := range outputs {
		infos[i] = Info{Name: v.Name, Elem: int(v.DataType)}
		for _, d := range v.Dimensions {
			infos[i].Dims = append(infos[i].Dims, int(d))
		}
	}
	return infos, nil
}

// cpuOptions returns the options, with steps applied, of a session that runs seldom and on one thread.
func cpuOptions(steps ...func(*onnxruntime.SessionOptions) error) (*onnxruntime.SessionOptions, error) {
	o, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	all := slices.Concat([]func(*onnxruntime.SessionOptions) error{
		func(o *onnxruntime.SessionOptions) error { return o.SetIntraOpNumThreads(1) },
		func(o *onnxruntime.SessionOptions) error { return o.SetInterOpNumThreads(1) },
		func(o *onnxruntime.SessionOptions) error {
			return o.SetLogSeverityLevel(onnxruntime.LoggingLevelFatal)
		},
		func(o *onnxruntime.SessionOptions) error {
			return o.AddSessionConfigEntry("session.use_env_allocators", "1")
		},
		func(o *onnxruntime.SessionOptions) error {
			return o.AddSessionConfigEntry("session.disable_prepacking", "1")
		},
	}, steps)
	for _, step := range all {
		if err := step(o); err != nil {
			o.Destroy()
			return nil, err
		}
	}
	return o, nil
}
