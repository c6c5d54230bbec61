package model_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// netCase is a published net and its entry in the manifest.
type netCase struct {
	params model.ONNXParams // Path is relative to the folder of nets
	images string           // a folder of images of the net's size, or ""
	right  int              // number of images classified correctly
	batch  int              // Spec.Batch
}

var netCases = []netCase{
	{model.ONNXParams{Path: "cifar10_resnet20.onnx"}, "cifar10_test_png", 186, 0},
	{model.ONNXParams{Path: "cifar10_mlperftiny_resnet8.onnx", Preset: "raw"}, "cifar10_test_png", 181, 0},
	{model.ONNXParams{Path: "cifar10_cct4_3x1.onnx", Preset: "cifar10"}, "cifar10_test_png", 170, 0},
	{model.ONNXParams{Path: "cifar10_vnncomp_vit_pgd_2_3_16.onnx", Preset: "cifar10-per-image"},
		"cifar10_test_png", 135, 0},
	{model.ONNXParams{Path: "cifar10_vnncomp_resnet_2b.onnx", Preset: "cifar10"}, "cifar10_test_png", 150, 1},
	{model.ONNXParams{Path: "mnist_vnncomp_convnet_maxpool.onnx", Preset: "unit"}, "mnist_test", 98, 1},
	{model.ONNXParams{Path: "imagenet_squeezenet1.1_caffe_227.onnx", Preset: "caffe-bgr"}, "", 0, 0},
	{model.ONNXParams{Path: "imagenet_mobilenet_v2_keras_1.0_224_dq.onnx", Preset: "half"}, "", 0, 0},
	{model.ONNXParams{Path: "imagenet_vit_tiny_patch16_224.onnx", Preset: "half"}, "", 0, 0},
}

// TestTopOneOfRealNets compares accuracies with the manifest. ImageNet's nets, whose images need resizing,
// are tested in dataset/folder.
func TestTopOneOfRealNets(t *testing.T) {
	data := modeltest.Data(t)
	for _, tt := range netCases {
		if tt.images == "" {
			continue
		}
		t.Run(tt.params.Path, func(t *testing.T) {
			tt.params.Path = filepath.Join(data, "models", tt.params.Path)
			images, labels := pictures(t, filepath.Join(data, "images", tt.images))
			r := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
				"model": {modeltest.Model(t, tt.params)}, "images": {stagetest.Items(nil, images...)},
			})
			right := 0
			for i, payload := range r.Payloads["targets"] {
				class, err := stages.ScalarOf(payload)
				if err != nil {
					t.Fatal(err)
				}
				if int(class) == labels[i] {
					right++
				}
			}
			if right != tt.right {
				t.Errorf("%d of %d right, want %d", right, len(images), tt.right)
			}
		})
	}
}

// TestBatchAndThreads checks that a net's answer to an image is bit-identical for all batch sizes and
// positions, with one thread and with three.
func TestBatchAndThreads(t *testing.T) {
	data := modeltest.Data(t)
	cases := slices.Clone(netCases)
	for i := range cases {
		cases[i].params.Path = filepath.Join(data, "models", cases[i].params.Path)
	}
	for _, name := range []string{"smallcnn", "gapcnn", "timm_resnet_basic_bn", "timm_resnet_basic2_bn",
		"timm_vit_op13", "timm_vit_op17"} {
		cases = append(cases,
			netCase{params: model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models", name+".onnx")}})
	}
	for _, tt := range cases {
		t.Run(filepath.Base(tt.params.Path), func(t *testing.T) {
			m := modeltest.Model(t, tt.params)
			if s := modeltest.Spec(t, m); s.Batch != tt.batch || s.Probabilities {
				t.Errorf("found batch %d, probabilities %v", s.Batch, s.Probabilities)
			}
			modeltest.Invariant(t, m)
		})
	}
}

// pictures reads the images of a folder and their labels.
func pictures(t *testing.T, dir string) ([][]byte, []int) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "labels.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var images [][]byte
	var labels []int
	for _, row := range rows[1:] {
		b, err := os.ReadFile(filepath.Join(dir, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		img, err := picture.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		label, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, stages.NewTensor(img.Planes(), 3, img.H, img.W).Encode())
		labels = append(labels, label)
	}
	return images, labels
}
