package ort

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
	"github.com/runexp/runexp/stages/stagetest"
)

// Each class has one provider, and those that aren't the processor's can be probed.
func TestProviders(t *testing.T) {
	var classes []string
	for _, p := range Providers {
		classes = append(classes, p.Class)
		if probed := p.adapters != nil && p.why != nil; probed != (p.add != nil) {
			t.Errorf("%s: added is %v, probed %v", p.Class, p.add != nil, probed)
		}
	}
	if !slices.Equal(classes, stages.DeviceClasses) {
		t.Errorf("providers of %v, want %v", classes, stages.DeviceClasses)
	}
}

// What CUDA's provider says, and its driver, is explained. The texts are those of onnxruntime 1.32 and
// onnxruntime-gpu 1.26 and 1.31.
func TestWhyNoCUDA(t *testing.T) {
	const load = "/onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:2043 " +
		"onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() " +
		"[ONNXRuntimeError] : 1 : FAIL : Failed to load library "
	const provider = "/x/capi/libonnxruntime_providers_cuda.so"
	const missing = ": cannot open shared object file: No such file or directory"
	card := []gpu.Adapter{{Name: "A card", Driver: "570"}}
	for _, tt := range []struct {
		visible string
		text    string
		has     []gpu.Adapter
		missing error
		want    string
	}{
		{"", "CUDA execution provider is not enabled in this build. ", nil, gpu.NoDriver,
			"this ONNX Runtime has no CUDA: pip uninstall "},
		{"", load + provider + " with error: " + provider + missing, card, nil,
			"this ONNX Runtime has no CUDA: pip "},
		{"", load + provider + " with error: libcublasLt.so.13" + missing, nil, gpu.NoDriver,
			"no driver of NVIDIA works here: "},
		{"", load + provider + " with error: libcublasLt.so.13" + missing, card, nil,
			"CUDA's provider needs libcublasLt.so.13, which isn't found: pip install 'onnxruntime-gpu["},
		{"", "CUDA failure 100: no CUDA-capable device is detected ; GPU=0", nil, gpu.NoAdapter,
			"NVIDIA's driver has no GPU: nvidia-smi "},
		{"7", "CUDA failure 100: no CUDA-capable device is detected ; GPU=0", nil, gpu.NoAdapter,
			`NVIDIA's driver shows no GPU: CUDA_VISIBLE_DEVICES is "7"`},
		{"", "Non-zero status code: cuDNN is not available. Install cuDNN, update", card, nil,
			"CUDA's provider needs cuDNN, which isn't found: pip "},
		{"", load + "CUDA failure 222: the provided PTX was compiled with an unsupported toolchain. ; GPU=0",
			card, nil,
			"A card with the driver 570 computes nothing: error 222, the provided PTX was compiled with an " +
				"unsupported toolchain."},
		{"", load + "something else\nand more", card, nil,
			"A card with the driver 570 computes nothing: Failed to load library something else"},
	} {
		if tt.visible == "" {
			os.Unsetenv("CUDA_VISIBLE_DEVICES")
		} else {
			t.Setenv("CUDA_VISIBLE_DEVICES", tt.visible)
		}
		got := whyNoCUDA(errors.New(tt.text), tt.has, tt.missing).Error()
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// An adapter without 16-bit arithmetic is told from other failures, and what a program may compute then.
func TestNoShaderF16(t *testing.T) {
	err := explain(errors.New("Non-zero status code returned while running Cast node. Name:'runexp_Cast' " +
		"Status Message: shader_helper.cc:416 GenerateSourceCode Program Cast requires f16 but the device " +
		"does not support it."))
	var none *NoDevice
	if !errors.As(err, &none) || !strings.Contains(none.Reason, "lacks shader-f16") {
		t.Errorf("got %v", err)
	}
}

// Unmeasured precisions are refused, except to a program that measures them.
func TestMeasure(t *testing.T) {
	t.Cleanup(func() { measuring.Store(false) })
	for _, name := range []string{stages.TF32, stages.Float16} {
		measuring.Store(false)
		if row, err := ProviderOf("cuda").In(name); err == nil {
			t.Errorf("%s: %+v", name, row)
		}
		Measure()
		row, err := ProviderOf("cuda").In(name)
		if err != nil || row.Half != (name == stages.Float16) {
			t.Errorf("%s: %+v, %v", name, row, err)
		}
	}
}

// A process computes on CUDA with TF32 or without it, as its first session does.
func TestOneTF32(t *testing.T) {
	r := library(t)
	t.Setenv("NVIDIA_TF32_OVERRIDE", "0")
	if err := r.prepareCUDA(false); err != nil {
		t.Errorf("without it: %v", err)
	}
	var none *NoDevice
	if err := r.prepareCUDA(true); !errors.As(err, &none) || !strings.Contains(none.Reason, "without it") {
		t.Errorf("with it, then: %v", err)
	}
}

// A class with several devices names them; one that uses a single adapter says how another is chosen.
func TestAbsent(t *testing.T) {
	for _, tt := range []struct {
		class  string
		usable int
		others []gpu.Adapter
		want   string
	}{
		{"webgpu", 1, nil, "there is no webgpu:7, only webgpu:0"},
		{"webgpu", 1, make([]gpu.Adapter, 1),
			"webgpu:7 can't be chosen by number, as only webgpu:0 can: a process "},
		{"cuda", 4, nil, "there is no cuda:7, only cuda:0 to cuda:3"},
	} {
		d := stages.Device{Class: tt.class, Index: 7}
		got := ProviderOf(tt.class).absent(d, tt.usable, tt.others).Error()
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// The plugin is found where a variable says, next to the library, and in the environments in which the
// library is looked for.
func TestFindPlugin(t *testing.T) {
	environment, next, given := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("VIRTUAL_ENV", environment)
	t.Setenv("HOME", t.TempDir())
	library := filepath.Join(next, fileName())
	put := func(dir string) string {
		file := filepath.Join(dir, webGPU.fileName())
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(file, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	check := func(want string) {
		t.Helper()
		if got, err := webGPU.find(library); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	installed := put(filepath.Join(environment, "lib/python3.12/site-packages/onnxruntime_ep_webgpu"))
	check(installed)
	check(put(next))
	want := put(given)
	for _, path := range []string{given, want} {
		t.Setenv(webGPU.variable, path)
		check(want)
	}
}

// A library that has WebGPU needs no plugin, unless the variable asks for it.
func TestPluginOfLibrary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VIRTUAL_ENV", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	library, plugin := filepath.Join(dir, fileName()), filepath.Join(dir, webGPU.fileName())
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		if got := Plugin(library); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	write(library, "WebGpuExecutionProvider")
	check("")
	write(plugin, "")
	check(plugin)
	write(library, "...ep.webgpuexecutionprovider.powerPreference...")
	check("")
	t.Setenv(webGPU.variable, plugin)
	check(plugin)
}

// What a library's file shows is what it does.
func TestCompiledIn(t *testing.T) {
	r := library(t)
	t.Setenv("VIRTUAL_ENV", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	_, _, err := r.Devices("webgpu")
	var none *NoDevice
	if has := !errors.As(err, &none) || none.Reason != webGPU.lacking; has != compiledIn(r.Library.Path) {
		t.Errorf("the library has WebGPU: %v (%v); its file shows otherwise", has, err)
	}
}

// A driver that never answers is given up on, and its process ended.
func TestDriverThatHangs(t *testing.T) {
	r := library(t)
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the names of files are those of Linux")
	}
	workers(t)
	plugin := filepath.Join(t.TempDir(), "plugin.so")
	source := plugin + ".c"
	if err := os.WriteFile(source, []byte("#include <unistd.h>\n"+
		"void *CreateEpFactories(void) { for (;;) sleep(1000); }\nvoid ReleaseEpFactory(void) {}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", plugin, source).CombinedOutput(); err != nil {
		stagetest.Lacks(t, "no C compiler: "+err.Error()+string(out))
	}
	t.Setenv(webGPU.variable, plugin)
	defer func(was time.Duration) { patience = was }(patience)
	patience = 2 * time.Second
	_, _, err := r.Devices("webgpu")
	var none *NoDevice
	if !errors.As(err, &none) || none.Reason != "the driver hasn't answered for 2s" {
		t.Errorf("got %v", err)
	}
}

// A device's sessions take turns whatever their programs are loaded with. WebGPU's share one queue, and crash
// if two threads use it at the same time.
func TestTurnsAreTheDevices(t *testing.T) {
	type identity struct {
		Class string
		Index int
	}
	first := stages.Device{Class: "webgpu"}
	for i := range reflect.TypeFor[stages.Device]().NumField() {
		d := first
		switch field := reflect.ValueOf(&d).Elem().Field(i); field.Kind() {
		case reflect.Int:
			field.SetInt(1)
		case reflect.Bool:
			field.SetBool(true)
		default:
			field.SetString("cuda")
		}
		same := identity{d.Class, d.Index} == identity{first.Class, first.Index}
		if shared := turnsOf(d) == turnsOf(first); shared != same {
			t.Errorf("%+v and %+v share turns: %t, want %t", d, first, shared, same)
		}
	}
}
