package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// webGPU returns the environment of a command whose ONNX Runtime has WebGPU, as make test-gpu has it.
func webGPU(t *testing.T) []string {
	t.Helper()
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: RUNEXP_WEBGPU isn't set: make test-gpu runs this test")
	}
	return []string{"ONNXRUNTIME_LIB=" + os.Getenv("ONNXRUNTIME_LIB"), "ONNXRUNTIME_EP_WEBGPU="}
}

// compiled makes a library of a file of testdata.
func (w *world) compiled(name, source string) string {
	w.Helper()
	library := w.path(name)
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library,
		filepath.Join("testdata", source)).CombinedOutput()
	if err != nil {
		stagetest.Lacks(w, "no C compiler: "+err.Error()+string(out))
	}
	return library
}

// oneSentence fails the test unless a command wrote one error, which matches a pattern, and at most one hint.
func (e ending) oneSentence(t *testing.T, pattern string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(e.stderr, "\n"), "\n")
	if len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "hint: ") ||
		!regexp.MustCompile(pattern).MatchString(e.stderr) {
		t.Errorf("got\n%s\nwant an error and a hint that match %s", e.stderr, pattern)
	}
	if places := regexp.MustCompile(`\w+\.(cc|cpp|h):\d|::|ONNXRuntimeError`); places.MatchString(e.stderr) {
		t.Errorf("%q shows where in a library it arose", e.stderr)
	}
}

// driverJSON is the manifest of a driver of Vulkan.
const driverJSON = `{"file_format_version": "1.0.0",
	"ICD": {"library_path": "./driver.so", "api_version": "1.1.0"}}`

const oneNet = `name: x
stages:
  images: {uses: dataset/shapes, with: {count: 1, size: 64}}
  model: {uses: model/onnx, with: {path: %q, preset: half}}
  accuracy: {uses: score/top-1, in: {model: model, images: images, labels: images.labels}}
publish: [accuracy]
`

// Whatever keeps a plugin from computing, from a file that is none to one that crashes or prints, is told in
// a sentence with exit code 3, and so is a library without CUDA.
func TestNoWebGPUPlugin(t *testing.T) {
	runtimeOrSkip(t)
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the names of files are those of Linux")
	}
	w := newWorld(t, map[string]string{"x.yaml": fmt.Sprintf(oneNet, net(t, "vgg")), "text.so": "hello"})
	standIn := w.compiled("plugin.so", "plugin.c")
	for _, tt := range []struct{ name, plugin, state, devices, want string }{
		{"none", w.path("none.so"), "", "webgpu",
			`^runexp: webgpu: \$ONNXRUNTIME_EP_WEBGPU names no plugin: ` +
				`\S+/none.so is no file\nhint: pip install onnxruntime-ep-webgpu\n$`},
		{"a folder without it", w.dir, "", "webgpu",
			`/libonnxruntime_providers_webgpu.so is no file\nhint: `},
		{"a text", w.path("text.so"), "", "webgpu",
			`text.so is no plugin of ONNX Runtime \(file too short\)\nhint: `},
		{"another library", w.compiled("other.so", "other.c"), "", "webgpu",
			`other.so is no plugin of ONNX Runtime \(undefined symbol: CreateEpFactories\)\nhint: `},
		{"of another version", standIn, "old", "webgpu",
			`the plugin \S+/plugin.so doesn't fit ONNX Runtime ` +
				`[\d.]+ \(version 99 of the interface is needed\)\nhint: pip install --upgrade `},
		{"without devices", standIn, "empty", "webgpu:7",
			`the plugin \S+/plugin.so offers no device\nhint: `},
		{"that prints", standIn, "loud", "webgpu", `the plugin \S+/plugin.so offers no device\nhint: `},
		{"that crashes", standIn, "crash", "webgpu",
			`ends the process that uses it: SIGSEGV, an access to memory that isn't its own\nhint: `},
		{"that exits", standIn, "exit", "webgpu",
			`ends the process that uses it: exit code 5: the driver gives up\nhint: `},
		{"cuda", "", "", "cuda", `^runexp: cuda: this ONNX Runtime has no CUDA\nhint: pip \S+ .* && ` +
			`pip install 'onnxruntime-gpu\[cuda,cudnn\]'\n$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := *w
			w.TB = t
			w.env = []string{"ONNXRUNTIME_EP_WEBGPU=" + tt.plugin, "STATE=" + tt.state}
			e := w.run(exitEnvironment, "run", "x.yaml", "--devices", tt.devices)
			e.oneSentence(t, tt.want)
			if e.stdout != "" {
				t.Errorf("wrote %q", e.stdout)
			}
			if _, err := os.Stat(w.path("artifacts")); err == nil {
				t.Error("something was computed")
			}
		})
	}
}

// What keeps drivers of Vulkan from computing is told in a sentence with exit code 3, also where they were
// there in the run before; what one has can't be had twice.
func TestNoWebGPUAdapter(t *testing.T) {
	env := webGPU(t)
	w := newWorld(t, map[string]string{"x.yaml": fmt.Sprintf(oneNet, net(t, "vgg"))})
	w.compiled("driver.so", "driver.c")
	w.write("driver.json", []byte(driverJSON))
	manifest := "VK_DRIVER_FILES=" + w.path("driver.json")
	for _, tt := range []struct {
		name, devices string
		env           []string
		want          string
	}{
		{"webgpu:7", "webgpu:7", nil, `^runexp: webgpu: there is no webgpu:7, only webgpu:0\n`},
		{"no driver", "webgpu", []string{"VK_DRIVER_FILES=" + w.path("none.json")},
			`no Vulkan driver works here\nhint: VK_DRIVER_FILES allows only \S+/none.json\n$`},
		{"a driver without adapter", "webgpu", []string{manifest, "STATE=empty"},
			`the Vulkan driver has no adapter\nhint: `},
		{"a driver whose adapter is too old", "webgpu", []string{manifest, "STATE=old"},
			`doesn't compute on Stand-in with the driver \S+ 1.2.3: it is too old for WebGPU, or ` +
				`lacks .*\nhint: `},
		{"a driver that crashes", "webgpu", []string{manifest, "STATE=crash"},
			`ends the process that uses it: SIGSEGV, .*\nhint: `},
		{"no loader", "webgpu", []string{"LD_LIBRARY_PATH="},
			`there is no Vulkan loader, libvulkan.so.1\nhint: apt `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := *w
			w.TB = t
			w.env = append(append([]string{}, env...), tt.env...)
			if tt.name == "no loader" && systemHas("libvulkan.so.1") {
				t.Skip("skipped: the system has a Vulkan loader")
			}
			w.run(exitEnvironment, "run", "x.yaml", "--devices", tt.devices).oneSentence(t, tt.want)
		})
	}
}

// systemHas reports whether the system's loader finds a library.
func systemHas(library string) bool {
	out, _ := exec.Command("/sbin/ldconfig", "-p").Output()
	return bytes.Contains(out, []byte(library))
}

// A class tells its adapters, a run on one leaves stderr to its own lines although another driver warns, and
// when the adapter is gone the next run reports that.
func TestWebGPU(t *testing.T) {
	w := newWorld(t, map[string]string{"x.yaml": fmt.Sprintf(oneNet, net(t, "vgg"))})
	w.compiled("driver.so", "driver.c")
	w.write("driver.json", []byte(driverJSON))
	drivers := "VK_ADD_DRIVER_FILES=" + w.path("driver.json") // to those of the system
	if files := os.Getenv("VK_DRIVER_FILES"); files != "" {
		drivers = "VK_DRIVER_FILES=" + files + ":" + w.path("driver.json")
	}
	w.env = append(webGPU(t), "XDG_RUNTIME_DIR=", "STATE=loud", drivers)
	e := w.run(exitDone, "doctor")
	if !regexp.MustCompile(`(?m)^webgpu +webgpu:0, \S.*, driver \S.*, [\d.]+ GB$`).MatchString(e.stdout) {
		t.Errorf("doctor prints\n%s", e.stdout)
	}
	if e.stderr != "" {
		t.Errorf("doctor writes %q to stderr", e.stderr)
	}
	w.env = append(w.env, "STATE=old")
	several := regexp.MustCompile(
		`(?m)^webgpu +webgpu:0 is the first of these .*:\n +Stand-in, .*\n +\S.* GB$`)
	if e := w.run(exitDone, "doctor"); !several.MatchString(e.stdout) {
		t.Errorf("of several adapters doctor prints\n%s", e.stdout)
	}
	w.env = append(w.env, "STATE=loud")
	e = w.run(exitDone, "run", "x.yaml", "--devices", "webgpu", "--batch", "1")
	if !strings.Contains(e.stderr, " on webgpu:0\n") || strings.Contains(e.stderr, "stand-in") {
		t.Errorf("a run writes\n%s", e.stderr)
	}
	w.env = append(w.env, "VK_DRIVER_FILES="+w.path("driver.json"), "STATE=empty")
	w.run(exitEnvironment, "run", "x.yaml", "--devices", "webgpu").oneSentence(t,
		`^runexp: webgpu: the Vulkan driver has no adapter\nhint: `)
}

// WebGPU's plugin computes as the library does that has WebGPU, and results tell which of them made them.
func TestWebGPUPlugin(t *testing.T) {
	w := newWorld(t, map[string]string{"x.yaml": fmt.Sprintf(oneNet, net(t, "vgg"))})
	w.env = webGPU(t)
	library := strings.TrimPrefix(w.env[0], "ONNXRUNTIME_LIB=")
	plugin := filepath.Join(filepath.Dir(library), "libonnxruntime_providers_webgpu.so")
	if _, err := os.Stat(plugin); err != nil {
		t.Skip("skipped: there is no plugin next to the library: go run ./.ci/deps -webgpu gets it")
	}
	w.run(exitDone, "run", "x.yaml", "--devices", "webgpu", "--batch", "1", "--out", "artifacts/built-in")
	w.env = append(w.env, "ONNXRUNTIME_EP_WEBGPU="+filepath.Dir(plugin))
	same := []string{"plan", "x.yaml", "--devices", "webgpu", "--same-device"}
	if plan := w.run(exitDone, same...).stdout; !strings.Contains(plan, "1 to run") {
		t.Errorf("what the library made passes for the plugin's:\n%s", plan)
	}
	w.env = append(w.env, "RUNEXP_STORE="+w.path("another"))
	w.run(exitDone, "run", "x.yaml", "--devices", "webgpu", "--batch", "1", "--out", "artifacts/plugin")
	if plan := w.run(exitDone, same...).stdout; !strings.Contains(plan, "4 cached") {
		t.Errorf("what the plugin made doesn't:\n%s", plan)
	}
	w.run(exitDone, "diff", "artifacts/built-in", "artifacts/plugin")
}

// A device that is lost in the middle of a chunk ends the run in a sentence; the next run goes on, and what
// comes out is what the processor says.
func TestLostOnWebGPU(t *testing.T) {
	experiment := strings.Replace(fmt.Sprintf(oneNet, net(t, "vgg")), "count: 1", "count: 12", 1)
	w := newWorld(t, map[string]string{"x.yaml": experiment})
	env := webGPU(t)
	loader := ""
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		if file := filepath.Join(dir, "libvulkan.so.1"); loader == "" {
			if _, err := os.Stat(file); err == nil {
				loader = file
			}
		}
	}
	if loader == "" {
		t.Skip("skipped: LD_LIBRARY_PATH doesn't say where Vulkan's loader is")
	}
	lost := filepath.Dir(w.compiled("libvulkan.so.1", "lost.c"))
	run := []string{"run", "x.yaml", "--devices", "webgpu", "--batch", "2", "--chunk", "2", "--out"}
	w.env = append(env, "VULKAN_LOADER="+loader, "LD_LIBRARY_PATH="+lost, "SUBMISSIONS=20")
	e := w.run(exitFailed, append(run, "artifacts/lost")...)
	last := e.stderr[strings.LastIndex(strings.TrimSpace(e.stderr), "\n")+1:]
	ending{stderr: last}.oneSentence(t, `^runexp: no device is left: webgpu:0: the device is lost: `+
		`.*; what is done is stored, and the same command goes on from here`)
	if !strings.Contains(e.stderr, "compared with the processor: ") {
		t.Errorf("the device was lost before it had computed anything:\n%s", e.stderr)
	}
	w.env = env
	w.run(exitDone, append(run, "artifacts/lost")...)
	w.env = append(env, "RUNEXP_STORE="+w.path("another"))
	run[3] = "cpu"
	w.run(exitDone, append(run, "artifacts/cpu")...)
	same(t, w.path("artifacts/lost"), w.path("artifacts/cpu"))
}

// What docs/devices.md quotes, commands report.
func TestDocsDevices(t *testing.T) {
	var sources strings.Builder
	files, err := filepath.Glob("../../stages/ort/p*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(b)
	}
	_, table, _ := strings.Cut(page(t, "docs/devices.md"), "| `doctor` says |")
	quotes := regexp.MustCompile("(?m)^\\| `.*?` \\|").FindAllString(table, -1)
	if len(quotes) < 8 {
		t.Fatalf("%d rows", len(quotes))
	}
	for _, row := range quotes {
		for _, m := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(row, -1) {
			if !strings.Contains(sources.String(), m[1]) {
				t.Errorf("docs/devices.md quotes %q, which nothing reports", m[1])
			}
		}
	}
}
