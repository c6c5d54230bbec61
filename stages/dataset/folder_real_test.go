package dataset_test

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestFolderTopOne checks that published nets classify exactly as many photographs correctly as in the run
// that made their manifest. Decoding JPEG with the standard library, which is a few levels off, changes one
// of the 250.
func TestFolderTopOne(t *testing.T) {
	data := modeltest.Data(t)
	at224 := picture.Size{H: 224, W: 224}
	type topOne struct {
		net, preset, images string
		size                picture.Size
		n, right            int
	}
	for _, tt := range stagetest.Sample(t, 2, []topOne{
		{"imagenet_vit_tiny_patch16_224", "half", "imagenet_val227", at224, 250, 205},
		{"imagenet_mobilenet_v2_keras_1.0_224_dq", "half", "imagenet_val227", at224, 250, 194},
		{"imagenet_squeezenet1.1_caffe_227", "caffe-bgr", "imagenet_val227", picture.Size{}, 250, 177},
		{"cifar10_resnet20", "imagenet", "cifar10_test_png", picture.Size{}, 200, 186},
		{"mnist_vnncomp_convnet_maxpool", "unit", "mnist_test", picture.Size{}, 100, 98},
	}) {
		t.Run(tt.net, func(t *testing.T) {
			r := stagetest.Run(t, dataset.Folder, &dataset.FolderParams{
				Path: filepath.Join(data, "images", tt.images), Size: tt.size, Filter: "bicubic",
				Corrupt: "fail",
			}, nil)
			params := *model.ONNX.NewParams().(*model.ONNXParams)
			params.Path, params.Preset = filepath.Join(data, "models", tt.net+".onnx"), tt.preset
			got := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
				"model":  {modeltest.Model(t, params)},
				"images": {stagetest.Items(r.Facts["images"], r.Payloads["images"]...)},
			}).Payloads["targets"]
			if len(got) != tt.n {
				t.Fatalf("%d images, want %d", len(got), tt.n)
			}
			right := 0
			for i, b := range got {
				class, err := stages.ScalarOf(b)
				if err != nil {
					t.Fatal(err)
				}
				label, err := stages.ScalarOf(r.Payloads["labels"][i])
				if err != nil {
					t.Fatal(err)
				}
				if class == label {
					right++
				}
			}
			if right != tt.right {
				t.Errorf("%d of %d right, want %d", right, tt.n, tt.right)
			}
		})
	}
}
