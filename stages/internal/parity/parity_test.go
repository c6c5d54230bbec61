// Package parity holds what devices of other classes compute against what the processor does, by the same
// library: every stage that computes on a device, on four nets. Its tests need a library with WebGPU and an
// adapter, which may be one in software: make test-gpu has both.
package parity

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

var (
	update = flag.Bool("update", false, "write the deviations that were measured into "+table)
	only   = flag.String("only", "", "the stages to measure, as a regular expression; others keep their rows")
)

// The nets are small, and of the kinds that methods treat differently: a transformer, residual blocks with
// BatchNormalization, a head of averages, fully connected layers.
var nets = []string{"timm_vit_op17", "timm_resnet_basic2_bn", "gapcnn", "smallcnn"}

// sharp bounds deviations where a tolerance allows for kinks, ties and orders that the last bit decides: on
// the images of this test it decides none. A derivative that is off by a hundredth exceeds it.
const sharp = 5e-3

// device returns a slot on WebGPU, and whether every pair of a stage and a net is to be tested: RUNEXP_WEBGPU
// is 1, or all.
func device(t *testing.T) (slot stages.Slot, all bool) {
	t.Helper()
	mode := os.Getenv("RUNEXP_WEBGPU")
	if mode == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	d := stages.Device{Class: "webgpu"}
	if _, err := modeltest.Runtime(t).Adapters(d); err != nil {
		t.Fatal(err)
	}
	slot = stagetest.NewSlotOn(d)
	t.Cleanup(func() { stagetest.Release(slot) })
	return slot, mode == "all"
}

// TestParityOnWebGPU runs every stage of the registry that computes on devices: on every net, or in turns, so
// that each is run on a net that it fits, and each net has a quarter of them.
func TestParityOnWebGPU(t *testing.T) {
	slot, all := device(t)
	chosen, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]row{}
	worlds := map[string]*world{}
	for turn, s := range deviceStages() {
		if !chosen.MatchString(s.Name) {
			continue
		}
		ran := false
		for k := range nets {
			net := nets[(turn+k)%len(nets)]
			if worlds[net] == nil {
				worlds[net] = newWorld(t, net)
			}
			worst, err := worlds[net].compare(t, slot, s)
			if err != nil {
				continue // it fits the net on no device, or shows nothing on it
			}
			ran = true
			if r := measured[s.Name]; r.net == "" || worst > r.deviation {
				measured[s.Name] = row{s.Name, worst, net, s.Tolerance}
			}
			if !all {
				break
			}
		}
		if !ran {
			t.Errorf("%s: no net fits it, or shows anything", s.Name)
		}
	}
	if *update && all && !t.Failed() {
		writeTable(t, measured)
	}
}

// TestAgainOnWebGPU checks that a device makes the same bytes again, and in other batches the same within the
// tolerance.
func TestAgainOnWebGPU(t *testing.T) {
	slot, _ := device(t)
	w := newWorld(t, nets[0])
	for _, name := range []string{"attribute/saliency", "attribute/rise", "perturb/deletion"} {
		s, _ := registry.Builtin().Lookup(name)
		run := func(batch int) []stages.Output {
			e, err := stagetest.Env(s, w.in(s))
			if err != nil {
				t.Fatal(err)
			}
			e.Slot, e.Batch = slot, batch
			if err := s.Run(t.Context(), w.params(s), e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return e.Outputs
		}
		first, again, other := run(8), run(8), run(3)
		for i, o := range first {
			if !bytes.Equal(o.Data, again[i].Data) {
				t.Errorf("%s: other bytes in a second run", name)
			}
			d := stages.Deviation(s.Output(o.Port).Type, other[i].Data, o.Data)
			if t.Logf("%s: %.1e in batches of 3", name, d); d > s.Tolerance {
				t.Errorf("%s: in batches of 3 it deviates by %.2g", name, d)
			}
		}
	}
}

// deviceStages returns the stages that compute on devices, sorted by name.
func deviceStages() (found []*stages.Stage) {
	for _, s := range registry.Builtin().Family("") {
		if s.Device {
			found = append(found, s)
		}
	}
	return found
}

// compare runs a stage on the processor and on a slot, and returns the largest deviation of what it makes.
// Its error is the processor's refusal of the net, which the slot must share, or why the comparison would
// show nothing.
func (w *world) compare(t *testing.T, slot stages.Slot, s *stages.Stage) (worst float64, err error) {
	t.Helper()
	start := time.Now()
	want, err := stagetest.TryOn(w.cpu, *s, w.params(s), w.in(s))
	processor := time.Since(start)
	if err == nil {
		if err := shows(s, want); err != nil {
			return 0, err
		}
	}
	start = time.Now()
	got, failed := stagetest.TryOn(slot, *s, w.params(s), w.in(s))
	took := time.Since(start)
	if err != nil {
		if failed == nil || failed.Error() != err.Error() {
			t.Errorf("%s on %s: the processor says %q, the device %v", s.Name, w.net, err, failed)
		}
		return 0, err
	}
	if failed != nil {
		t.Errorf("%s on %s: %v", s.Name, w.net, failed)
		return 0, nil
	}
	text := ""
	for _, port := range s.Outputs {
		if len(got.Payloads[port.Name]) != len(want.Payloads[port.Name]) {
			t.Fatalf("%s on %s: %d %s, want %d", s.Name, w.net, len(got.Payloads[port.Name]), port.Name,
				len(want.Payloads[port.Name]))
		}
		of := 0.0 // the port
		for i, b := range want.Payloads[port.Name] {
			of = max(of, stages.Deviation(port.Type, got.Payloads[port.Name][i], b))
		}
		text += fmt.Sprintf(" %s %.1e", port.Name, of)
		worst = max(worst, of)
	}
	t.Logf("%-30s %-22s%s (%.1f s, cpu %.1f s)", s.Name, w.net, text, took.Seconds(), processor.Seconds())
	if most := min(s.Tolerance, sharp); worst > most {
		t.Errorf("%s on %s: the deviation from the processor is %.2g, at most it may be %.2g", s.Name, w.net,
			worst, most)
	}
	return worst, nil
}
