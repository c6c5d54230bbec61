package model_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestFamilies checks which families the graphs of nets tell, and that nets of others are of none: that their
// activations, pools, gates or convolutions aren't those of a measured net.
func TestFamilies(t *testing.T) {
	modeltest.Runtime(t)
	cnn, norm := relevance.FamilyCNN, relevance.FamilyNormCNN
	for name, want := range map[string][]string{
		"vgg": {cnn, norm}, "vgg-bn": {norm}, "resnet": {norm}, "vit": {relevance.FamilyViT},
		"vit-16": {relevance.FamilyViT}, "convnext": {relevance.FamilyConvNeXt},
		"swin":  {relevance.FamilySwin},
		"mixer": {relevance.FamilyMixer},
	} {
		checkFamilies(t, "../../experiments/quickstart/"+name+".onnx", want)
	}
	checkFamilies(t, "../../experiments/text/reviews.onnx", nil)
	published := stagetest.Shared(t, "data", "models")
	for name, want := range map[string][]string{
		"cifar10_resnet20": {norm}, "cifar10_mlperftiny_resnet8": {cnn, norm}, "cifar10_cct4_3x1": nil,
		"cifar10_vnncomp_vit_pgd_2_3_16": nil, "imagenet_squeezenet1.1_caffe_227": {cnn, norm},
		"imagenet_mobilenet_v2_keras_1.0_224_dq": nil, "imagenet_vit_tiny_patch16_224": {relevance.FamilyViT},
		"mnist_vnncomp_convnet_maxpool": nil,
	} {
		checkFamilies(t, filepath.Join(published, name+".onnx"), want)
	}
}

func checkFamilies(t *testing.T, file string, want []string) {
	t.Helper()
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path = file
	x, err := model.Inspect(context.Background(), *p)
	if err != nil {
		t.Fatal(err)
	}
	if x.Trial != nil {
		defer x.Trial.Close()
	}
	if !slices.Equal(x.Families, want) {
		t.Errorf("%s: %q, want %q", filepath.Base(file), x.Families, want)
	}
}
