package relevance_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestLayersOfNets compares the middle and final layers of nets with those of their papers and of the
// official runs.
func TestLayersOfNets(t *testing.T) {
	official := filepath.Join(golden.Dir(t), "models")
	data := filepath.Join(modeltest.Data(t), "models")
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	quickstart := filepath.Join(root, "experiments", "quickstart")
	for _, tt := range []struct{ path, middle, final string }{
		{filepath.Join(official, "smallcnn.onnx"), "/relu2/Relu_output_0 [12 16 16]",
			"/relu3/Relu_output_0 [16 8 8]"},
		{filepath.Join(official, "gapcnn.onnx"), "/relu2/Relu_output_0 [16 8 8]",
			"/relu3/Relu_output_0 [16 8 8]"},
		{filepath.Join(official, "timm_resnet_basic_bn.onnx"), "/layer2/layer2.0/act2/Relu_output_0 [12 4 4]",
			"/layer3/layer3.0/act2/Relu_output_0 [16 2 2]"},
		{filepath.Join(official, "timm_resnet_basic2_bn.onnx"),
			"/layer2/layer2.0/act2/Relu_output_0 [12 4 4]", "/layer3/layer3.0/act2/Relu_output_0 [16 2 2]"},
		{filepath.Join(official, "timm_vit_op13.onnx"), "/blocks/blocks.1/Add_output_0 [17 24]",
			"/blocks/blocks.1/Add_1_output_0 [17 24]"},
		{filepath.Join(official, "timm_vit_op17.onnx"), "/blocks/blocks.1/Add_output_0 [17 24]",
			"/blocks/blocks.1/Add_1_output_0 [17 24]"},
		{filepath.Join(quickstart, "vgg.onnx"), "/6/Relu_output_0 [40 16 16]", "/11/Relu_output_0 [56 8 8]"},
		{filepath.Join(quickstart, "resnet.onnx"), "/blocks/blocks.1/relu2/Relu_output_0 [24 16 16]",
			"/blocks/blocks.3/relu2/Relu_output_0 [40 8 8]"},
		{filepath.Join(quickstart, "vit.onnx"), "/blocks/blocks.2/Add_output_0 [65 48]",
			"/blocks/blocks.3/Add_1_output_0 [65 48]"},
		{filepath.Join(data, "cifar10_cct4_3x1.onnx"), "/blocks.1/Add_1_output_0 [256 128]",
			"/blocks.3/Add_1_output_0 [256 128]"},
		{filepath.Join(data, "cifar10_mlperftiny_resnet8.onnx"), "Relu_26 [32 16 16]", "Relu_38 [64 8 8]"},
		{filepath.Join(data, "cifar10_resnet20.onnx"), "/layer2/layer2.1/Relu_1_output_0 [32 16 16]",
			"/layer3/layer3.2/Relu_1_output_0 [64 8 8]"},
		{filepath.Join(data, "cifar10_vnncomp_resnet_2b.onnx"), "24 [16 8 8]", "29 [16 8 8]"},
		{filepath.Join(data, "cifar10_vnncomp_vit_pgd_2_3_16.onnx"), "/1/1.1/1.1.0/Add_output_0 [5 48]",
			"/1/1.1/1.1.1/Add_output_0 [5 48]"},
		{filepath.Join(data, "imagenet_mobilenet_v2_keras_1.0_224_dq.onnx"), "Add_106 [64 14 14]",
			"Clip_203 [1280 7 7]"},
		{filepath.Join(data, "imagenet_squeezenet1.1_caffe_227.onnx"), "/f/f.9/Relu_output_0 [48 14 14]",
			"/Relu_output_0 [1000 14 14]"},
		{filepath.Join(data, "imagenet_vit_tiny_patch16_224.onnx"),
			"/blocks/blocks.5/Add_2_output_0 [197 192]", "/blocks/blocks.10/Add_2_output_0 [197 192]"},
		{filepath.Join(data, "mnist_vnncomp_convnet_maxpool.onnx"), "6 [32 27 27]", "6 [32 27 27]"},
	} {
		t.Run(filepath.Base(tt.path), func(t *testing.T) {
			n := modeltest.Net(t, modeltest.Model(t, model.ONNXParams{Path: tt.path}))
			g, err := n.Graph(context.Background(), stagetest.NewSlot(), n.Fit(2, 2))
			if err != nil {
				t.Fatal(err)
			}
			middle, final := relevance.Layers(g)
			for _, v := range []struct{ is, want string }{{middle, tt.middle}, {final, tt.final}} {
				if got := fmt.Sprint(v.is, " ", g.Shape(v.is)[1:]); got != v.want {
					t.Errorf("%s, want %s", got, v.want)
				}
			}
		})
	}
}
