package registry_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// withoutProgram are the stages that compute on a device and have no program in their
// keys, with the reason.
var withoutProgram = map[string]string{}

// TestDeviceStagesHavePrograms holds that the keys of what computes on a device know the
// compiler.
func TestDeviceStagesHavePrograms(t *testing.T) {
	for _, s := range everyStage() {
		switch reason, excused := withoutProgram[s.Name]; {
		case s.Device && s.Program == nil && !excused:
			t.Errorf("%s computes on a device and has no program: make it with program.Stage, or list it here with the reason", s.Name)
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

// TestPrograms holds that the program in the key of a stage is the one that it runs: what
// it asks for in a rehearsal of one thread on blank items is what it asks for on a slot of
// two threads, on images. Each stage is asked on a slot of its own, so that nothing that
// another made is taken for it.
func TestPrograms(t *testing.T) {
	if _, err := registry.OpenRuntime(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	nets := map[string]model.ONNXParams{}
	for _, name := range []string{"vgg-bn", "resnet", "vit"} {
		nets[name] = model.ONNXParams{Path: filepath.Join("..", "experiments", "quickstart", name+".onnx"), Preset: "half"}
	}
	for name, p := range nets {
		t.Run(name, func(t *testing.T) {
			defaults := model.ONNX.NewParams().(*model.ONNXParams)
			defaults.Path, defaults.Preset = p.Path, p.Preset
			net := stagetest.Run(t, model.ONNX, defaults, nil)
			draws := stagetest.Run(t, dataset.Shapes, &dataset.ShapesParams{Count: 2, Size: 64, Seed: 5, Domain: "a"}, nil)
			given := map[stages.Type]stages.Data{
				stages.Model:   stagetest.Value(net.Facts["model"], net.Payloads["model"][0]),
				stages.Images:  stagetest.Items(draws.Facts["images"], draws.Payloads["images"]...),
				stages.Labels:  stagetest.Items(draws.Facts["labels"], draws.Payloads["labels"]...),
				stages.Targets: stagetest.Items(nil, draws.Payloads["labels"]...),
				stages.Ranks:   ranks(64 * 64),
			}
			for _, s := range everyStage() {
				if s.Program == nil {
					continue
				}
				t.Run(s.Name, func(t *testing.T) { sameProgram(t, s, given) })
			}
		})
	}
}

// ranks returns two maps of the ranks of n pixels.
func ranks(n int) stages.Data {
	at := make([]uint32, n)
	for i := range at {
		at[i] = uint32(i)
	}
	b := stages.NewTensor(at, 64, n/64).Encode()
	return stagetest.Items(nil, b, b)
}

func sameProgram(t *testing.T, s *stages.Stage, given map[stages.Type]stages.Data) {
	in := map[string][]stages.Data{}
	for _, port := range s.Inputs {
		if d, ok := given[port.Type]; ok {
			in[port.Name] = []stages.Data{d}
		} else if !port.Optional {
			t.Fatalf("nothing to give to port %s", port.Name)
		}
	}
	rehearsed, unfit := s.Program(t.Context(), s.NewParams(), &stages.Env{Stage: s, Slot: stagetest.NewSlot(), Ports: in})
	e, err := stagetest.Env(s, in)
	if err != nil {
		t.Fatal(err)
	}
	slot := &recorder{Slot: stagetest.NewSlot()}
	defer stagetest.Release(slot.Slot)
	e.Slot, e.Batch = slot, 2
	err = s.Run(t.Context(), s.NewParams(), e)
	switch {
	case err != nil && unfit != nil:
		t.Skipf("refused, also in a rehearsal: %v", err)
	case err != nil || unfit != nil:
		t.Fatalf("running ends in %v, a rehearsal in %v", err, unfit)
	case rehearsed != slot.digest():
		t.Errorf("%d programs run are others than those of the rehearsal", len(slot.programs))
	}
}

