package registry_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// withoutProgram are the stages that compute on a device and have no program in their keys, with the reason.
var withoutProgram = map[string]string{}

// TestDeviceStagesHavePrograms holds that the keys of what computes on a device know the compiler.
func TestDeviceStagesHavePrograms(t *testing.T) {
	for _, s := range everyStage() {
		switch reason, excused := withoutProgram[s.Name]; {
		case s.Device && s.Program == nil && !excused:
			t.Errorf("%s computes on a device and has no program: make it with program.Stage, or list it "+
				"here with the reason", s.Name)
		case excused && (s.Program != nil || reason == ""):
			t.Errorf("%s has a program, or no reason to have none", s.Name)
		}
	}
}

func everyStage() (all []*stages.Stage) {
	set := registry.Builtin()
	for _, name := range set.Names() {
		s, _ := set.Lookup(name)
		all = append(all, s)
	}
	return all
}

// A recorder is a slot of two threads that takes note of the programs asked for on it.
type recorder struct {
	stages.Slot
	programs []stages.Digest
}

func (*recorder) Device() stages.Device { return stages.Device{Class: "cpu", Threads: 2} }

func (r *recorder) Record(d stages.Digest) { r.programs = append(r.programs, d) }

func (r *recorder) digest() stages.Digest {
	slices.SortFunc(r.programs, func(a, b stages.Digest) int { return bytes.Compare(a[:], b[:]) })
	var b []byte
	for _, d := range slices.Compact(r.programs) {
		b = append(b, d[:]...)
	}
	return stages.Sum(b)
}

// real are nets of other people's: channels last, of a fixed batch, with normalisations written out.
var real = map[string]string{
	"cifar10_cct4_3x1": "cifar10", "cifar10_mlperftiny_resnet8": "raw",
	"cifar10_vnncomp_vit_pgd_2_3_16": "cifar10",
	"mnist_vnncomp_convnet_maxpool":  "unit",
}

// TestProgramsOfRealNets is TestPrograms on nets of other people's, for a stage of each kind of program.
func TestProgramsOfRealNets(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	models := stagetest.Shared(t, "data", "models")
	for name, preset := range real {
		t.Run(name, func(t *testing.T) {
			given := givenTo(t, filepath.Join(models, name+".onnx"), preset)
			for _, stage := range []string{
				"attribute/abslrp", "attribute/deeplift", "attribute/grad-cam", "attribute/lrp-epsilon",
				"attribute/saliency", "model/predict", "perturb/ablation",
			} {
				s, _ := registry.Builtin().Lookup(stage)
				t.Run(s.Name, programCase{stage: s, params: s.NewParams(), given: given}.sameProgram)
			}
		})
	}
}

// TestPrograms holds that the program in the key of a stage is the one that it runs: what it asks for in a
// rehearsal of one thread on blank items is what it asks for on a slot of two threads, on images. Each stage
// is asked on a slot of its own, so that nothing that another made is taken for it.
func TestPrograms(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	given := map[string]map[stages.Type]stages.Data{}
	var cases []programCase
	for _, s := range everyStage() {
		if s.Program == nil {
			continue
		}
		for _, net := range []string{"vgg-bn", "resnet", "vit"} {
			if given[net] == nil {
				given[net] = givenTo(t, filepath.Join("..", "experiments", "quickstart", net+".onnx"), "half")
			}
			c := programCase{name: net + "/" + s.Name, stage: s, params: settled(s), given: given[net]}
			cases = append(cases, c)
			if s.Input("baselines") != nil {
				c.name, c.unwired = c.name+" without baselines", "baselines"
				cases = append(cases, c)
			}
		}
	}
	for _, c := range stagetest.Sample(t, 4, cases) {
		t.Run(c.name, c.sameProgram)
	}
}

// settled returns the default parameters of a stage, with the first choice for one that a method declares.
func settled(s *stages.Stage) any {
	params := s.NewParams()
	for _, f := range stages.Fields(params) {
		if f.Declared != "" && f.Unless == "" {
			first := slices.DeleteFunc(f.Choices, func(c string) bool { return c == stages.AsDeclared })[0]
			reflect.ValueOf(params).Elem().FieldByIndex(f.Index).SetString(first)
		}
	}
	return params
}

// givenTo returns a model, and two images of its size with what else stages take.
func givenTo(t *testing.T, path, preset string) map[stages.Type]stages.Data {
	t.Helper()
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Preset = path, preset
	net := stagetest.Run(t, model.ONNX, p, nil)
	size, err := strconv.Atoi(net.Facts["model"]["height"])
	if err != nil {
		t.Fatal(err)
	}
	draws := stagetest.Run(t, dataset.Shapes,
		&dataset.ShapesParams{Count: 2, Size: size, Seed: 5, Domain: "a"}, nil)
	ends := stages.NewTensor(make([]float64, 8), 4, 2).Encode() // of information curves
	background := stagetest.Run(t, dataset.Background, nil, map[string][]stages.Data{
		"images": {stagetest.Items(nil, draws.Payloads["images"]...)}}).Payloads["background"][0]
	return map[stages.Type]stages.Data{
		stages.Model:   stagetest.Value(net.Facts["model"], net.Payloads["model"][0]),
		stages.Images:  stagetest.Items(draws.Facts["images"], draws.Payloads["images"]...),
		stages.Labels:  stagetest.Items(draws.Facts["labels"], draws.Payloads["labels"]...),
		stages.Targets: stagetest.Items(nil, draws.Payloads["labels"]...),
		stages.Ranks:   ranks(size),
		stages.Maps:    slopes(size),
		stages.Masks:   stagetest.Items(draws.Facts["masks"], draws.Payloads["masks"]...),
		stages.Curves:  stagetest.Items(nil, ends, ends),

		stages.Background: stagetest.Value(nil, background),
	}
}

// ranks returns two maps of the ranks of pixels.
func ranks(size int) stages.Data {
	at := make([]uint32, size*size)
	for i := range at {
		at[i] = uint32(i)
	}
	b := stages.NewTensor(at, size, size).Encode()
	return stagetest.Items(nil, b, b)
}

// slopes returns two maps that aren't constant.
func slopes(size int) stages.Data {
	values := make([]float32, size*size)
	for i := range values {
		values[i] = float32(i)
	}
	b := stages.NewTensor(values, size, size).Encode()
	return stagetest.Items(nil, b, b)
}

// twice returns the items of d, and once more.
func twice(t *testing.T, d stages.Data) stages.Data {
	t.Helper()
	var items stages.ItemSlice
	n, load := d.Items.Len(), d.Load
	for i := range 2 * n {
		item, err := d.Items.At(i % n)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	d.Items, d.Load = items, func(i int) ([]byte, error) { return load(i % n) }
	return d
}

// A programCase is a stage with its parameters and inputs, without the one that isn't wired.
type programCase struct {
	name    string
	stage   *stages.Stage
	params  any
	given   map[stages.Type]stages.Data
	unwired string
}

// sameProgram compares the programs of a rehearsal with those of a run.
func (c programCase) sameProgram(t *testing.T) {
	s, params := c.stage, c.params
	in := map[string][]stages.Data{}
	for _, port := range s.Inputs {
		if port.Name == c.unwired {
			continue
		}
		if d, ok := c.given[port.Type]; ok {
			if s.Relation == stages.Whole && port.Type.Items {
				d = twice(t, d) // a mosaic takes four images
			}
			in[port.Name] = []stages.Data{d}
		} else if !port.Optional {
			t.Fatalf("nothing to give to port %s", port.Name)
		}
	}
	rehearsed, unfit := s.Program(t.Context(), params,
		&stages.Env{Stage: s, Slot: stagetest.NewSlot(), Ports: in})
	e, err := stagetest.Env(s, in)
	if err != nil {
		t.Fatal(err)
	}
	slot := &recorder{Slot: stagetest.NewSlot()}
	defer stagetest.Release(slot.Slot)
	e.Slot, e.Batch = slot, 2
	err = s.Run(t.Context(), params, e)
	switch {
	case err != nil && unfit != nil:
		t.Skipf("refused, also in a rehearsal: %v", err)
	case err != nil || unfit != nil:
		t.Fatalf("running ends in %v, a rehearsal in %v", err, unfit)
	case rehearsed != slot.digest():
		t.Errorf("%d programs run are others than those of the rehearsal", len(slot.programs))
	}
}
