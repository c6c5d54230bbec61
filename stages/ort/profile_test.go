package ort

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// TestRecordedProfile reads a recording of three runs on WebGPU: Conv, Acosh, Conv, ArgMax, GatherElements,
// Det, of which the CPU computes Det, and the transposition of whole numbers that a layout with channels
// last needs. The numbers are the file's, added up by hand: the copies wait for the device, which isn't
// their time.
func TestRecordedProfile(t *testing.T) {
	b, err := os.ReadFile("testdata/profile.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := profileOf(b)
	if err != nil {
		t.Fatal(err)
	}
	us := time.Microsecond
	if want := (277634 + 275638) * us / 2; p.Run != want {
		t.Errorf("a run takes %v, want %v", p.Run, want)
	}
	if want := (276664 + 274787) * us / 2; p.Device != want {
		t.Errorf("the device takes %v, want %v", p.Device, want)
	}
	out, in := p.Copies()
	wantOut := Part{"WebGpuExecutionProvider", toHost, 2, 65536 + 32768, (259 + 254) * us / 2}
	wantIn := Part{"WebGpuExecutionProvider", fromHost, 1, 65536, (106 + 83) * us / 2}
	if out != wantOut || in != wantIn {
		t.Errorf("copies %v and %v, want %v and %v", out, in, wantOut, wantIn)
	}
	want := []Part{
		{"CPUExecutionProvider", "Det", 1, 8, (67 + 58) * us / 2},
		{"CPUExecutionProvider", "Transpose", 1, 65536, (25 + 20) * us / 2},
	}
	if diff := cmp.Diff(want, p.Fallbacks("webgpu")); diff != "" {
		t.Error(diff)
	}
	if got := p.Fallbacks("cpu"); got != nil {
		t.Errorf("fallbacks on the CPU: %v", got)
	}
	if got, want := p.Cost("webgpu"), (513.+189+125+45)/(277634+275638); got != want {
		t.Errorf("cost %g, want %g", got, want)
	}
}

// A device that doesn't tell when it computes leaves open how long a copy from it waits.
func TestSilentDevice(t *testing.T) {
	node := func(at, dur, op, provider string) string {
		return `{"cat":"Node","ts":` + at + `,"dur":` + dur + `,"name":"n","args":{"op_name":"` + op +
			`","provider":"` + provider + `","output_size":"4"}}`
	}
	run := func(at string) string { return `{"cat":"Session","ts":` + at + `,"dur":1000,"name":"model_run"}` }
	p, err := profileOf([]byte("[" + strings.Join([]string{
		run("0"), run("2000"),
		node("100", "90", "Det", "CPUExecutionProvider"), // of the first run
		node("2100", "500", toHost, "CUDAExecutionProvider"),
		node("2600", "20", fromHost, "CUDAExecutionProvider"),
		node("2650", "300", "If", "CPUExecutionProvider"),
		node("2660", "80", "Det", "CPUExecutionProvider"), // in the If
	}, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Part{
		{"CPUExecutionProvider", "Det", 1, 4, 80 * time.Microsecond},
		{"CUDAExecutionProvider", fromHost, 1, 4, 20 * time.Microsecond},
		{"CUDAExecutionProvider", toHost, 1, 4, 0},
	}
	if diff := cmp.Diff(Profile{Run: time.Millisecond, Parts: want}, p); diff != "" {
		t.Error(diff)
	}
	if got := p.Cost("cuda"); got != 0.1 {
		t.Errorf("cost %g, want 0.1", got)
	}
	if _, err := profileOf([]byte("[" + run("0") + "]")); err == nil {
		t.Error("a profile of one run, in which providers compile")
	}
}

// A session records the nodes that it ran, here or in a process of its own, and leaves no file.
func TestProfile(t *testing.T) {
	here := library(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	workers(t)
	there, err := For(stages.Digest{}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	for _, r := range []*Runtime{here, there} {
		s, err := r.Profiled().NewSession(doubler(t, 3, add), []string{"x"}, []string{"y"}, cpu)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			third(t, r, s)
		}
		p, err := s.EndProfile()
		if err != nil {
			t.Fatal(err)
		}
		if p.Run <= 0 || p.Device != 0 || len(p.Parts) != 1 || p.Parts[0].Time >= p.Run {
			t.Errorf("got %+v", p)
		}
		p.Parts[0].Time = 0
		if want := (Part{"CPUExecutionProvider", "Add", 1, 12, 0}); p.Parts[0] != want {
			t.Errorf("got %+v, want %+v", p.Parts[0], want)
		}
		s, err = r.Profiled().NewSession(doubler(t, 3, add), []string{"x"}, []string{"y"}, cpu)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "runexp*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestAloneOnWebGPU holds that a session says when its device needs the CPU's help, here and in a process
// of its own.
func TestAloneOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("needs an adapter of WebGPU: set RUNEXP_WEBGPU where there is one")
	}
	here := library(t)
	workers(t)
	there, err := For(stages.Digest{}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	d := stages.Device{Class: "webgpu"}
	helped := doubler(t, 4, func(f *onnx.Fragment) {
		f.OpTo("y", "Reshape", []string{f.Op("Det", []string{f.Op("Reshape",
			[]string{"x", f.Ints("square", []int64{2, 2}, 2)})}), f.Ints("row", []int64{1}, 1)})
	})
	for _, r := range []*Runtime{here, there} {
		for _, tt := range []struct {
			model     []byte
			fallsBack bool
		}{{doubler(t, 4, add), false}, {helped, true}} {
			s, err := r.Alone().NewSession(tt.model, []string{"x"}, []string{"y"}, d)
			if FallsBack(err) != tt.fallsBack || err != nil && !tt.fallsBack {
				t.Errorf("falls back: %v, want %t", err, tt.fallsBack)
			}
			if err != nil {
				s, err = r.NewSession(tt.model, []string{"x"}, []string{"y"}, d)
			}
			if err != nil {
				t.Error(err)
				continue
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
