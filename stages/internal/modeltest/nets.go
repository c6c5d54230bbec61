package modeltest

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// Nets returns every available net: the embedded ones, those of the official numbers, and real ones; of the
// latter the large ones on request.
func Nets(t *testing.T, large bool) map[string]model.ONNXParams {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]model.ONNXParams{}
	add := func(dir string, names ...string) {
		for _, name := range names {
			out[name] = model.ONNXParams{Path: filepath.Join(dir, name+".onnx"), Preset: "unit"}
		}
	}
	add(filepath.Join(root, "experiments", "quickstart"), "resnet", "vgg", "vit")
	add(filepath.Join(golden.Dir(t), "models"), "gapcnn", "smallcnn", "timm_resnet_basic2_bn",
		"timm_resnet_basic_bn", "timm_vit_op13", "timm_vit_op17")
	real := filepath.Join(Data(t), "models")
	add(real, "cifar10_cct4_3x1", "cifar10_mlperftiny_resnet8", "cifar10_resnet20",
		"cifar10_vnncomp_resnet_2b", "cifar10_vnncomp_vit_pgd_2_3_16", "mnist_vnncomp_convnet_maxpool")
	if large {
		add(real, "imagenet_mobilenet_v2_keras_1.0_224_dq", "imagenet_squeezenet1.1_caffe_227",
			"imagenet_vit_tiny_patch16_224")
	}
	return out
}

// Noise returns a weight of uneven values around 0, others for other seeds.
func Noise(name string, seed float64, shape ...int) *onnxpb.TensorProto {
	v := make([]float32, 1)
	for _, d := range shape {
		v = slices.Repeat(v, d)
	}
	for i := range v {
		v[i] = float32(math.Sin(seed * float64(i*i+1)))
	}
	return onnx.FloatTensor(name, v, shape...)
}

// Source returns what programs of a net are lowered from, without a graph.
func Source(t testing.TB, p model.ONNXParams) lower.Source {
	t.Helper()
	m := decode(t, Model(t, p))
	return lower.Source{Spec: m.Spec, File: func() ([]byte, error) { return m.ONNX, nil }}
}
