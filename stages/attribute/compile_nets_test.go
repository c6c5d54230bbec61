package attribute

import (
	"compress/gzip"
	"errors"
	"io"
	mapkeys "maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// compileAndCheck compiles a method into a net's file and runs it beside the method. It returns the file, or
// nil if both refuse the net.
func compileAndCheck(t *testing.T, c Compilation, images [][]byte, tolerance float64) *Compiled {
	t.Helper()
	c.Slot = stagetest.NewSlot()
	if c.Params == nil {
		c.Params = c.Stage.NewParams()
	}
	file, err := Compile(t.Context(), c)
	if err != nil {
		in := map[string][]stages.Data{"model": {c.Model}, "images": {stagetest.Items(nil,
			Drawn(modeltest.Spec(t, c.Model))...)}}
		if c.Stage.Input("targets") != nil {
			payload := stages.NewTensor([]int64{0}, 1).Encode()
			in["targets"] = []stages.Data{stagetest.Items(nil, payload, payload, payload, payload)}
		}
		if _, own := stagetest.Try(*c.Stage, c.Params, in); own == nil {
			t.Errorf("the method runs, and no file is compiled: %v", err)
		}
		t.Logf("refused: %v", err)
		return nil
	}
	k, err := Check(t.Context(), c, file, images)
	if err != nil {
		t.Fatal(err)
	}
	if !(k.Own.Share <= tolerance) {
		t.Errorf("the map of image %d deviates by %.2g of its largest value", k.Own.Image, k.Own.Share)
	}
	if !(k.Usual.Share <= c.Stage.Tolerance) {
		t.Errorf("with all optimisations the map of image %d deviates by %.2g of its largest value",
			k.Usual.Image, k.Usual.Share)
	}
	t.Logf("deviation %.2g, %.2g with all optimisations, of %d images; %.3g ms beside %.3g ms; %d nodes",
		k.Own.Share, k.Usual.Share, k.Images, 1e3*k.File, 1e3*k.Model, file.Nodes)
	return &file
}

// packedNets are exports of architectures, small and with random weights, by how they take pixels.
func packedNets(t *testing.T) map[string]model.ONNXParams {
	t.Helper()
	out := map[string]model.ONNXParams{}
	packed, err := filepath.Glob("../internal/program/zoo/testdata/*.onnx.gz")
	if err != nil || len(packed) == 0 {
		t.Fatalf("no nets are packed: %v", err)
	}
	for _, path := range packed {
		out[strings.Split(filepath.Base(path), ".")[1]] = model.ONNXParams{Path: unpack(t, path)}
	}
	plain, err := filepath.Glob("../internal/program/testdata/nets/*.onnx")
	if err != nil || len(plain) == 0 {
		t.Fatalf("no nets: %v", err)
	}
	for _, path := range plain {
		out["form "+strings.TrimSuffix(filepath.Base(path), ".onnx")] = model.ONNXParams{Path: path}
	}
	return out
}

func unpack(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "net.onnx")
	w, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(w, z)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCompiledArchitectures compiles methods into exports of many architectures, ConvNeXt and vision
// transformers among them, and into nets of other forms: half precision, grey, channels last, other opsets.
func TestCompiledArchitectures(t *testing.T) {
	modeltest.Runtime(t)
	nets := packedNets(t)
	for _, name := range stagetest.Sample(t, 5, slices.Sorted(mapkeys.Keys(nets))) {
		p := nets[name]
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			r, err := stagetest.Try(model.ONNX, &model.ONNXParams{Path: p.Path, Preset: "half",
				Layout: "auto", Order: "auto", Kind: "auto"}, nil)
			if err != nil {
				t.Skipf("skipped: not a classifier of images of a known size: %v", err)
			}
			data := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
			for _, s := range []stages.Stage{Saliency, GradCAM, LRPEpsilon, DeepLIFT} {
				t.Run(filepath.Base(s.Name), func(t *testing.T) {
					c := Compilation{Stage: &s, Model: data, Prepares: true, Prepared: true, Fixed: 2}
					if own := modeltest.Spec(t, data).Batch; own > 0 {
						c.Fixed = own
					}
					compileAndCheck(t, c, nil, 1e-7)
					c.Fixed = 0
					compileAndCheck(t, c, nil, openBatch(s))
				})
			}
		})
	}
}

// openBatch is the tolerance of a file for any batch: its kernels are chosen without knowing the batch, and
// may round otherwise, which quotients of small numbers magnify.
func openBatch(s stages.Stage) float64 {
	switch {
	case s.Name == DeepLIFT.Name:
		return 1e-4
	case s.Tolerance == quotientTolerance:
		return 5e-6
	}
	return 1e-6
}

// TestCompiledRealNets compiles methods into pretrained nets, and checks the files on photographs.
func TestCompiledRealNets(t *testing.T) {
	dir := modeltest.Data(t)
	for _, c := range stagetest.Sample(t, 3, []struct {
		net, preset string
		size        int
		method      stages.Stage
		set         func(params any)
	}{
		{"imagenet_mobilenet_v2_keras_1.0_224_dq", "half", 224, GradCAM, nil},
		{"imagenet_mobilenet_v2_keras_1.0_224_dq", "half", 224, IntegratedGradients,
			func(p any) { p.(*IntegratedGradientsParams).Steps = 3 }},
		{"imagenet_squeezenet1.1_caffe_227", "caffe-bgr", 227, LRPComposite, nil},
		{"imagenet_squeezenet1.1_caffe_227", "caffe-bgr", 227, AbsLRP, nil},
		{"imagenet_vit_tiny_patch16_224", "half", 224, TIBAV, nil},
		{"imagenet_vit_tiny_patch16_224", "half", 224, GradCAM, nil},
		{"cifar10_mlperftiny_resnet8", "raw", 32, Saliency, nil},      // channels last
		{"mnist_vnncomp_convnet_maxpool", "unit", 28, DeepLIFT, nil},  // grey, one image at a time
		{"cifar10_vnncomp_resnet_2b", "cifar10", 32, LRPEpsilon, nil}, // one image at a time
	}) {
		t.Run(c.net+"/"+filepath.Base(c.method.Name), func(t *testing.T) {
			data := modeltest.Model(t, model.ONNXParams{Preset: c.preset,
				Path: filepath.Join(dir, "models", c.net+".onnx")})
			params := c.method.NewParams()
			if c.set != nil {
				c.set(params)
			}
			photographs := "imagenet_val227"
			if c.size == 32 {
				photographs = "cifar10_test_png"
			} else if c.size == 28 {
				photographs = "mnist_test"
			}
			images := photos(t, filepath.Join(dir, "images", photographs), c.size)
			compileAndCheck(t, Compilation{Stage: &c.method, Params: params, Model: data, Prepares: true,
				Prepared: true}, images, openBatch(c.method))
		})
	}
}

// photos returns payloads of the first photographs of a folder.
func photos(t *testing.T, dir string, size int) (payloads [][]byte) {
	t.Helper()
	p := dataset.Folder.NewParams().(*dataset.FolderParams)
	p.Path, p.Size.H, p.Size.W = dir, size, size
	sources, err := dataset.Folder.Sources(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &stages.Env{Stage: &dataset.Folder, Slot: stagetest.NewSlot()}
	for i := range sources[:4] {
		e.Calls = append(e.Calls, stages.Call{Item: stages.Item{ID: sources[i].ID}, Source: &sources[i]})
	}
	if err := dataset.Folder.Run(t.Context(), p, e); err != nil {
		t.Fatal(err)
	}
	for _, o := range e.Outputs {
		if o.Port == "images" {
			payloads = append(payloads, o.Data)
		}
	}
	return payloads
}

// TestCompiledTargets explains expressions of classes.
func TestCompiledTargets(t *testing.T) {
	data := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: quickstart("resnet")})
	for _, target := range []string{"predicted", "predicted:3", "7", "7-3", "predicted-predicted:2",
		"predicted - 0"} {
		for _, s := range []stages.Stage{InputXGradient, AbsLRP, IntegratedGradients} {
			params := s.NewParams()
			switch p := params.(type) {
			case *InputXGradientParams:
				p.Target = target
			case *AbsLRPParams:
				p.Target = target
			case *IntegratedGradientsParams:
				p.Target, p.Steps = target, 2
			}
			t.Run(target+"/"+filepath.Base(s.Name), func(t *testing.T) {
				compileAndCheck(t, Compilation{Stage: &s, Params: params, Model: data, Prepares: true,
					Prepared: true}, nil, openBatch(s))
			})
		}
	}
}

// TestCompiledNoise holds the noise in a file, and that on its input, against the method with the same noise.
func TestCompiledNoise(t *testing.T) {
	data := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: quickstart("vgg")})
	for _, input := range []bool{false, true} {
		for _, mean := range []string{"derivative", "magnitude", "square"} {
			p := SmoothGrad.NewParams().(*SmoothGradParams)
			p.Samples, p.Mean = 3, mean
			if mean == "square" {
				p.Scale, p.Noise = "absolute", 0.3
			}
			file := compileAndCheck(t, Compilation{Stage: &SmoothGrad, Params: p, Model: data,
				NoiseInput: input, Prepares: true, Prepared: true, Seed: 5}, nil, 1e-6)
			if got := len(file.Inputs); input != (got == 2) {
				t.Errorf("noise on an input: %t, and the file has %d inputs", input, got)
			}
		}
	}
}

// TestCompiledCheckDetects checks that a check tells a file from that of other parameters.
func TestCompiledCheckDetects(t *testing.T) {
	data := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: quickstart("vgg")})
	p := GradCAM.NewParams().(*GradCAMParams)
	c := Compilation{Stage: &GradCAM, Params: p, Model: data, Slot: stagetest.NewSlot(), Prepares: true,
		Prepared: true}
	file, err := Compile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Compile(t.Context(), c)
	if err != nil || !slices.Equal(again.ONNX, file.ONNX) {
		t.Errorf("compiled again the file has other bytes: %v", err)
	}
	other := *p
	other.Upsample = "nearest"
	c.Params = &other
	k, err := Check(t.Context(), c, file, nil)
	if err != nil || k.Own.Share < 1e-3 || k.Usual.Share < 1e-3 {
		t.Errorf("a file of other parameters deviates by %+v: %v", k, err)
	}
}

// TestCompiledOutputs checks that a file has all outputs of the model, with their names, types and numbers:
// the probabilities behind the explained logits, and a value in the middle.
func TestCompiledOutputs(t *testing.T) {
	m, err := onnx.ReadFile(quickstart("vgg"))
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fragment()
	logits := m.Outputs()[0]
	f.OpTo("probabilities", "Softmax", []string{logits.Name})
	f.OpTo("half", "Cast", []string{"probabilities"}, onnx.Attr{Name: "to", Value: 11})
	m.After(f)
	middle := m.Proto.Graph.Node[2].Output[0]
	m.SetOutputs(onnx.Value{Name: "probabilities", Elem: 1}, onnx.Value{Name: "half", Elem: 11},
		onnx.Value{Name: middle, Elem: 1})
	data := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: modeltest.File(t, m),
		Output: "probabilities"})
	for _, s := range []stages.Stage{Saliency, IntegratedGradients} {
		file := compileAndCheck(t, Compilation{Stage: &s, Model: data}, nil, 1e-6)
		var names, types []string
		for _, v := range file.Outputs {
			names, types = append(names, v.Name), append(types, v.Type)
		}
		if want := []string{"probabilities", "half", middle, "map"}; !slices.Equal(names, want) {
			t.Errorf("outputs %v, want %v", names, want)
		}
		if want := []string{"float", "double", "float", "float"}; !slices.Equal(types, want) {
			t.Errorf("types %v, want %v", types, want)
		}
		spec := modeltest.Spec(t, data)
		x := make([]float32, 2*spec.Size())
		for i := range x {
			x[i] = float32(i%17)/9 - 1
		}
		in := tensorOf(t, x, 2, 3, spec.Height, spec.Width)
		got := runFile(t, *file, map[string]ort.Value{file.Inputs[0].Name: in})
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		want := runFile(t, Compiled{ONNX: b, Inputs: file.Inputs, Outputs: []CompiledValue{
			{Name: "probabilities", Type: "float"}, {Name: middle, Type: "float"}}},
			map[string]ort.Value{file.Inputs[0].Name: in})
		for name, w := range want {
			if d := deviates(got[name].Data, w.Data); !(d <= 1e-6) {
				t.Errorf("%s deviates by %g", name, d)
			}
		}
	}
}

// TestCompileRefuses checks the errors of methods and parameters that don't fit.
func TestCompileRefuses(t *testing.T) {
	data := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: quickstart("resnet")})
	one := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: quickstart("vit")})
	for _, c := range []struct {
		stage stages.Stage
		set   func(p any)
		with  Compilation
		want  string
	}{
		{Saliency, func(p any) { p.(*SaliencyParams).Target = "label" }, Compilation{}, "knows no labels"},
		{DeepLIFT, func(p any) { p.(*DeepLIFTParams).Baseline = "black" }, Compilation{}, "name the preset"},
		{DeepLIFT, func(p any) { p.(*DeepLIFTParams).Baseline = "mask" }, Compilation{}, "for texts"},
		{IntegratedGradients, func(p any) { p.(*IntegratedGradientsParams).Layer = "final" }, Compilation{},
			"at the input"},
		{Saliency, nil, Compilation{NoiseInput: true}, "draws no noise"},
		{RawAttention, nil, Compilation{Model: one, TargetInput: true}, "the same for all classes"},
		{Saliency, func(p any) { p.(*SaliencyParams).Target = "12" }, Compilation{}, "class 12"},
		{GradCAMPlusPlus, func(p any) {
			q := p.(*GradCAMPlusPlusParams)
			q.Variant, q.Output = "official-rao", "probability"
		}, Compilation{}, "a probability"},
	} {
		p := c.stage.NewParams()
		if c.set != nil {
			c.set(p)
		}
		with := c.with
		with.Stage, with.Params, with.Slot = &c.stage, p, stagetest.NewSlot()
		if with.Model.Items == nil {
			with.Model = data
		}
		if _, err := Compile(t.Context(), with); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.stage.Name, err, c.want)
		}
	}
	if Compiles(RISE.NewParams()) || Compiles(Occlusion.NewParams()) || !Compiles(RAP.NewParams()) {
		t.Error("RISE or occlusion compiles, or RAP doesn't")
	}
}
