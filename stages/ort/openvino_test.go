package ort

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/ortapi"
	"github.com/runexp/runexp/stages/stagetest"
)

var inBFloat16 = stages.Device{Class: "cpu", Threads: 1, Precision: stages.BFloat16}

// logits returns what a net of the quickstart answers to two images.
func logits(t *testing.T, r *Runtime, net string, d stages.Device) []float32 {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(filepath.Join(root, "experiments", "quickstart", net+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewSession(model, []string{"input"}, []string{"logits"}, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := NewTensor[float32](r, 2, 3, 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i := range x.Data {
		x.Data[i] = float32(math.Sin(float64(i)*0.01) + math.Sin(float64(i)*0.37))
	}
	out, err := Fetch[float32](t.Context(), s, []Value{x})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Data
}

// Nets answer in bfloat16 with its rounding, 2⁻⁸ a product, and again with the same bytes; float32 on the
// same processor keeps its bits.
func TestOpenVINO(t *testing.T) {
	r := library(t)
	if err := r.Has(inBFloat16); err != nil {
		stagetest.LacksDevice(t, err)
	}
	for _, net := range []string{"vgg", "resnet", "vit"} {
		before := logits(t, r, net, cpu)
		got := logits(t, r, net, inBFloat16)
		worst, largest := 0.0, 0.0
		for i, want := range before {
			worst = max(worst, math.Abs(float64(got[i]-want)))
			largest = max(largest, math.Abs(float64(want)))
		}
		if t.Logf("%s: %.2g of %.2g", net, worst, largest); worst < 1e-5*largest || worst > 0.03*largest {
			t.Errorf("%s: logits deviate by %g, the largest is %g", net, worst, largest)
		}
		if !slices.Equal(logits(t, r, net, inBFloat16), got) {
			t.Errorf("%s: another session has other bits", net)
		}
		if !slices.Equal(logits(t, r, net, cpu), before) {
			t.Errorf("%s: float32 has other bits than before", net)
		}
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	devices, err := onnxruntime.GetEpDevices()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range devices {
		intel := strings.Contains(string(info), "GenuineIntel") &&
			ortapi.IsProcessor(r.Library.Path, handleOf(device))
		if ortapi.IsIntels(r.Library.Path, handleOf(device)) != intel {
			t.Errorf("%s: is Intel's: %v, after the plugin was registered", device.EpName(), !intel)
		}
	}
}

// What bfloat16 lacks on a machine is reported, with a remedy, whatever else the machine has.
func TestNoBFloat16(t *testing.T) {
	r := library(t)
	has := noBFloat16
	t.Cleanup(func() { noBFloat16 = has })
	check := func(d stages.Device, want ...string) {
		t.Helper()
		err := r.Has(d)
		var known *NoDevice
		if !errors.As(err, &known) {
			t.Fatalf("%v in %s: %v", d, d.Precision, err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v in %s: %q lacks %q", d, d.Precision, err, w)
			}
		}
	}
	noBFloat16 = func() error { return &NoDevice{"this processor has no bfloat16", "precision: float32"} }
	check(inBFloat16, "this processor has no bfloat16")
	noBFloat16 = func() error { return nil }
	openVINO.mu.Lock()
	registered := openVINO.registered
	openVINO.registered = nil
	openVINO.mu.Unlock()
	t.Cleanup(func() { openVINO.registered = registered })
	t.Setenv(openVINO.variable, "")
	t.Setenv("VIRTUAL_ENV", t.TempDir())
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("HOME", t.TempDir())
	check(inBFloat16, "OpenVINO's plugin of ONNX Runtime isn't found", "pip install 'runexp_xai[openvino]'")
	t.Setenv(openVINO.variable, "/none")
	check(inBFloat16, "$ONNXRUNTIME_EP_OPENVINO names no plugin", "/none")
	check(stages.Device{Class: "cpu", Precision: stages.Float16}, "cpu doesn't compute in float16",
		"float32 or bfloat16")
	for _, p := range []string{stages.TF32, stages.Float16} {
		check(stages.Device{Class: "cuda", Precision: p}, p+" isn't measured on cuda yet")
	}
}

// A session computes as many runs at a time as slots share it.
func TestStreams(t *testing.T) {
	for _, c := range []struct{ threads, cores, streams, all int }{
		{1, 2, 2, 2}, {2, 2, 1, 2}, {0, 8, 1, 8}, {1, 8, 8, 8}, {3, 8, 2, 6}, {4, 2, 1, 4},
	} {
		streams, all := streamsOf(stages.Device{Threads: c.threads}, c.cores)
		if streams != c.streams || all != c.all {
			t.Errorf("slots of %d threads on %d cores: %d streams of %d threads, want %d of %d", c.threads,
				c.cores, streams, all, c.streams, c.all)
		}
	}
}
