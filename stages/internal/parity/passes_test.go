package parity

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// known returns the parameters of a stage that are whole numbers, and more.
func known(params any, more map[string]int) map[string]int {
	all := map[string]int{}
	for _, f := range stages.Fields(params) {
		if v := reflect.ValueOf(params).Elem().FieldByIndex(f.Index); v.CanInt() {
			all[f.Name] = int(v.Int())
		}
	}
	maps.Copy(all, more)
	return all
}

// TestPassesAreStated checks that every stage that runs a model states its passes, by formulas that can be
// computed.
func TestPassesAreStated(t *testing.T) {
	any := map[string]int{}
	for name := range stages.PassQuantities {
		any[name] = 1
	}
	for _, s := range registry.Builtin().Family("") {
		if runs := s.Passes != (stages.Passes{}); runs != s.Device {
			t.Errorf("%s: device is %t, but its passes are %q", s.Name, s.Device, s.Passes)
		}
		for _, formula := range []string{s.Passes.Forward, s.Passes.Backward} {
			stagetest.Passes(t, formula, known(s.NewParams(), any))
		}
	}
}

// A meter is a slot that counts passes.
type meter struct {
	stages.Slot
	forward, backward int
}

func (*meter) Compiled(int, time.Duration) {}

func (m *meter) Passed(forward, backward int) {
	m.forward += forward
	m.backward += backward
}

// explained returns what stages read that run a model: the model, images, classes, and the order of a map.
func explained(t *testing.T, path string, images int) map[string][]stages.Data {
	t.Helper()
	shapes := dataset.Shapes.NewParams().(*dataset.ShapesParams)
	shapes.Count = images
	of := model.ONNX.NewParams().(*model.ONNXParams)
	of.Path, of.Preset = path, "half"
	in := map[string][]stages.Data{}
	items := func(port string, r stagetest.Result, as string) {
		in[as] = []stages.Data{stagetest.Items(r.Facts[port], r.Payloads[port]...)}
	}
	items("images", stagetest.Run(t, dataset.Shapes, shapes, nil), "images")
	loaded := stagetest.Run(t, model.ONNX, of, nil)
	in["model"] = []stages.Data{stagetest.Value(loaded.Facts["model"], loaded.Payloads["model"][0])}
	items("targets", stagetest.Run(t, model.Predict, nil, in), "targets")
	items("maps", stagetest.Run(t, attribute.Random, nil, in), "maps")
	rank, _ := registry.Builtin().Lookup("maps/rank")
	items("ranks", stagetest.Run(t, *rank, nil, in), "maps")
	ends := stagetest.Run(t, perturb.PICEnds, nil, in)
	items("ends", ends, "ends")
	items("mask", ends, "mask")
	return in
}

// atATime returns the file of a net of the quickstart that takes so many images at once, none of them fewer.
func atATime(t *testing.T, file string, batch int64) string {
	t.Helper()
	m, err := onnx.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(m.Proto.Graph.Input, m.Proto.Graph.Output) {
		v.Type.GetTensorType().Shape.Dim[0].Value =
			&onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: batch}
	}
	return modeltest.File(t, m)
}

// TestPasses measures what the reference tells: passes are counted as the engine counts them, also where a
// net takes seven images at once, so that most batches aren't full.
func TestPasses(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	type (
		set  func(p any)
		seen struct {
			net    string
			images int
		}
	)
	nets := map[string]string{"vgg": atATime(t, "../../../experiments/quickstart/vgg.onnx", 7),
		"vit": "../../../experiments/quickstart/vit.onnx"} // attention takes no fixed batch
	inputs := map[seen]map[string][]stages.Data{}
	for _, tt := range []struct {
		stage, net string
		batch      int
		set        set
		more       map[string]int
	}{
		{"attribute/saliency", "vgg", 4, nil, nil},
		{"attribute/grad-cam", "vit", 4, nil, nil},
		{"attribute/abslrp", "vgg", 4, nil, nil},
		{"attribute/lrp-composite", "vgg", 4, nil, nil},
		{"attribute/crap", "vgg", 4, nil, nil},
		{"attribute/guided-grad-cam", "vgg", 4, nil, nil},
		{"attribute/deeplift", "vgg", 4, nil, nil},
		{"attribute/integrated-gradients", "vgg", 4,
			func(p any) { p.(*attribute.IntegratedGradientsParams).Steps = 8 }, nil},
		{"attribute/left-ig", "vgg", 4, func(p any) { p.(*attribute.LeftIGParams).Steps = 8 }, nil},
		{"attribute/guided-ig", "vgg", 4, func(p any) { p.(*attribute.GuidedIGParams).Steps = 8 }, nil},
		{"attribute/agi", "vgg", 4,
			func(p any) { p.(*attribute.AGIParams).Classes = 2 },
			map[string]int{"rivals": 2}},
		{"attribute/smoothgrad", "vgg", 4, func(p any) { p.(*attribute.SmoothGradParams).Samples = 8 }, nil},
		{"attribute/vargrad", "vgg", 4, func(p any) { p.(*attribute.VarGradParams).Samples = 8 }, nil},
		{"attribute/rise", "vgg", 4, func(p any) { p.(*attribute.RISEParams).Masks = 16 }, nil},
		{"attribute/occlusion", "vgg", 2, nil, map[string]int{"windows": 15 * 15}},
		{"attribute/partition-shap", "vgg", 10,
			func(p any) { p.(*attribute.PartitionSHAPParams).Evaluations = 60 }, nil},
		{"attribute/xrai", "vgg", 4, func(p any) { p.(*attribute.XRAIParams).Steps = 8 }, nil},
		{"attribute/score-cam", "vgg", 4, nil, map[string]int{"channels": 56}},
		{"attribute/ablation-cam", "vgg", 3, nil, map[string]int{"channels": 56}},
		{"attribute/attention-rollout", "vit", 4, nil, nil},
		{"attribute/raw-attention", "vit", 4, nil, nil},
		{"attribute/tibav", "vit", 4, nil, nil},
		{"attribute/transition-attention", "vit", 4, nil, nil},
		{"attribute/random", "vgg", 4, nil, nil},
		{"model/predict", "vgg", 4, nil, nil},
		{"perturb/insertion", "vgg", 3, func(p any) { p.(*perturb.InsertionParams).Steps = 8 },
			map[string]int{"points": 9}},
		{"perturb/ablation", "vgg", 11, nil, map[string]int{"points": 11}},
		{"perturb/subset", "vgg", 4, func(p any) { p.(*perturb.SubsetParams).Samples = 6 },
			map[string]int{"rows": 6}},
		{"perturb/road", "vgg", 3, func(p any) { p.(*perturb.RoadParams).Shares = []float64{.1, .5} },
			map[string]int{"points": 3}},
		{"perturb/pic", "vgg", 13, nil, map[string]int{"thresholds": 13}},
		{"perturb/pic-ends", "vgg", 2, nil, nil},
		{"perturb/gradient-masking", "vgg", 4, nil, nil},
		{"mosaic/gae", "vgg", 2, nil, nil},
	} {
		s, _ := registry.Builtin().Lookup(tt.stage)
		images := tt.batch
		if s.Relation == stages.Whole { // an item is a mosaic of four
			images *= 4
		}
		params := s.NewParams()
		if tt.set != nil {
			tt.set(params)
		}
		quantities := known(params, tt.more)
		key := seen{tt.net, images}
		if inputs[key] == nil {
			inputs[key] = explained(t, nets[tt.net], images)
		}
		e, err := stagetest.Env(s, inputs[key])
		if err != nil {
			t.Fatal(err)
		}
		m := &meter{Slot: stagetest.NewSlot()}
		e.Slot, e.Batch = m, tt.batch
		if err := s.Run(t.Context(), params, e); err != nil {
			t.Fatalf("%s: %v", tt.stage, err)
		}
		stagetest.Release(m.Slot)
		for _, side := range []struct {
			name, formula string
			got           int
		}{{"forward", s.Passes.Forward, m.forward}, {"backward", s.Passes.Backward, m.backward}} {
			want, bound := stagetest.Passes(t, side.formula, quantities)
			want *= tt.batch
			if side.got != want && !(bound && side.got <= want && 2*side.got > want/2) {
				t.Errorf("%s: %d %s passes for %d items, but the reference says %q: %d", tt.stage, side.got,
					side.name, tt.batch, side.formula, want)
			}
		}
	}
}
