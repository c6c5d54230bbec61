package perturb_test

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// BenchmarkCurves measures what insertion and deletion of 16 steps add to the forward passes that they need:
// the processor time of ranking and perturbing images, as the slope between n and 4n images, relative to that
// of classifying as many images in the same batches. The ratio is the median of the rounds.
func BenchmarkCurves(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	real := filepath.Join(modeltest.Data(b), "models")
	quickstart := filepath.Join(root, "experiments", "quickstart")
	for _, net := range []struct {
		name, path string
		images     int
	}{
		{"resnet 64²", filepath.Join(quickstart, "resnet.onnx"), 8},
		{"vgg 64²", filepath.Join(quickstart, "vgg.onnx"), 8},
		{"vit 64²", filepath.Join(quickstart, "vit.onnx"), 8},
		{"resnet 32²", filepath.Join(real, "cifar10_resnet20.onnx"), 8},
		{"vit 224²", filepath.Join(real, "imagenet_vit_tiny_patch16_224.onnx"), 1},
		{"ResNet-50 224²", filepath.Join(root, ".bench", "resnet50.onnx"), 1},
		{"ViT-B/16 224²", filepath.Join(root, ".bench", "vit_b_16.onnx"), 1},
	} {
		b.Run(net.name, func(b *testing.B) {
			if _, err := os.Stat(net.path); err != nil {
				b.Skipf("skipped: there is no %s, which stages/internal/program/testdata/shapes.py writes",
					net.path)
			}
			m := modeltest.Model(b, model.ONNXParams{Path: net.path, Preset: "unit"})
			reportShare(b, "curves/bare-processor", curves, m, net.images)
			b.ReportMetric(1000*bare(b, m, net.images)/float64(net.images*2*points), "ms/pass")
		})
	}
}

// BenchmarkSubsets measures what 32 replaced subsets add to the forward passes that they need, as
// [BenchmarkCurves] does for curves.
func BenchmarkSubsets(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	real := filepath.Join(modeltest.Data(b), "models")
	for _, net := range []struct {
		name, path string
		images     int
	}{
		{"resnet 64²", filepath.Join(root, "experiments", "quickstart", "resnet.onnx"), 8},
		{"resnet 32²", filepath.Join(real, "cifar10_resnet20.onnx"), 8},
		{"vit 224²", filepath.Join(real, "imagenet_vit_tiny_patch16_224.onnx"), 1},
		{"ResNet-50 224²", filepath.Join(root, ".bench", "resnet50.onnx"), 1},
	} {
		b.Run(net.name, func(b *testing.B) {
			if _, err := os.Stat(net.path); err != nil {
				b.Skipf("skipped: there is no %s, which stages/internal/program/testdata/shapes.py writes",
					net.path)
			}
			m := modeltest.Model(b, model.ONNXParams{Path: net.path, Preset: "unit"})
			reportShare(b, "subsets/bare-processor", subsets, m, net.images)
		})
	}
}

// reportShare measures the processor time of a function by that of its bare passes, between some images and
// four times as many, so that what doesn't grow with their number is left out.
func reportShare(b *testing.B, unit string, of func(*testing.B, stages.Data, int) float64, m stages.Data,
	images int) {
	var with, without float64
	bare(b, m, images) // compiles
	of(b, m, images)
	for b.Loop() {
		few, fewBare := of(b, m, images), bare(b, m, images)
		manyBare, many := bare(b, m, 4*images), of(b, m, 4*images)
		with, without = with+many-few, without+manyBare-fewBare
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(with/without, unit)
}

// subsets returns the processor time of some images' replaced subsets, as many passes as curves has.
func subsets(b *testing.B, m stages.Data, images int) float64 {
	pictures, _, targets := inputs(b, m, images)
	before := processor(b)
	p := perturb.Subset.NewParams().(*perturb.SubsetParams)
	p.Samples, p.Sizes = 2*points-2, []int{224}
	in := map[string][]stages.Data{"model": {m}, "images": {stagetest.Items(nil, pictures...)},
		"targets": {stagetest.Items(nil, targets...)}}
	e, err := stagetest.Env(&perturb.Subset, in)
	if err != nil {
		b.Fatal(err)
	}
	e.Slot, e.Batch = slot, 32
	if err := perturb.Subset.Run(b.Context(), p, e); err != nil {
		b.Fatal(err)
	}
	return processor(b) - before
}

const points = 17

var slot = stagetest.NewWorkers(1)[0]

// curves returns the processor time of the curves of some images and their maps.
func curves(b *testing.B, m stages.Data, images int) float64 {
	pictures, maps, targets := inputs(b, m, images)
	rank, _ := registry.Builtin().Lookup("maps/rank")
	before := processor(b)
	ranks := stagetest.Run(b, *rank, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)}})
	insertion := perturb.Insertion.NewParams().(*perturb.InsertionParams)
	deletion := perturb.Deletion.NewParams().(*perturb.DeletionParams)
	insertion.Steps, deletion.Steps = points-1, points-1
	in := map[string][]stages.Data{"model": {m}, "images": {stagetest.Items(nil, pictures...)},
		"maps":    {stagetest.Items(nil, ranks.Payloads["ranks"]...)},
		"targets": {stagetest.Items(nil, targets...)}}
	var parts []stages.Part
	for _, part := range []stages.Part{{Params: insertion}, {Params: deletion}} {
		s := &perturb.Insertion
		if part.Params == any(deletion) {
			s = &perturb.Deletion
		}
		var err error
		if part.Env, err = stagetest.Env(s, in); err != nil {
			b.Fatal(err)
		}
		part.Env.Slot, part.Env.Batch = slot, 32
		parts = append(parts, part)
	}
	if err := perturb.Insertion.Shared.Run(b.Context(), parts); err != nil {
		b.Fatal(err)
	}
	return processor(b) - before
}

// inputs returns images, maps and targets.
func inputs(b *testing.B, m stages.Data, images int) (pictures, maps, targets [][]byte) {
	n := modeltest.Net(b, m)
	for i := range images {
		u := make([]uint8, 3*n.Height*n.Width)
		for k := range u {
			u[k] = uint8((k*k + 17*i*k) >> 3)
		}
		v := make([]float32, n.Height*n.Width)
		for k := range v {
			v[k] = float32(math.Sin(float64(k*k + i)))
		}
		pictures = append(pictures, stages.NewTensor(u, 3, n.Height, n.Width).Encode())
		maps = append(maps, stages.NewTensor(v, n.Height, n.Width).Encode())
		targets = append(targets, stages.NewTensor([]int64{0}, 1).Encode())
	}
	return pictures, maps, targets
}

// bare returns the processor time of as many forward passes.
func bare(b *testing.B, m stages.Data, images int) float64 {
	n := modeltest.Net(b, m)
	f, err := n.Forward(b.Context(), slot, n.Fit(points, 32))
	if err != nil {
		b.Fatal(err)
	}
	for i := range f.Batch {
		for k, x := 0, f.Image(i); k < len(x); k++ {
			x[k] = float32(math.Sin(float64(i + k*k)))
		}
	}
	before := processor(b)
	for k := 0; k < images*2*points; k += f.Batch {
		if err := f.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return processor(b) - before
}

// processor returns the seconds of processor time that this process has used.
func processor(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
