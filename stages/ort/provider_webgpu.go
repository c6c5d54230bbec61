package ort

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
)

// webGPUOptions are the options on which results depend. Today they are the library's defaults, which may
// change.
var webGPUOptions = map[string]string{
	// A discrete adapter is preferred.
	"powerPreference": "high-performance",
	// A buffer beyond a limit of the device is an error; without validation its results would be undefined.
	// "full" would check the library's own shaders at each call, too.
	"validationMode": "basic",
}

// addWebGPU adds the provider that is compiled into the library, or else the plugin, which an environment
// variable may prefer. Either has one adapter a process, chosen by Dawn, their implementation of WebGPU.
func addWebGPU(r *Runtime, o *onnxruntime.SessionOptions, index int) error {
	if index > 0 {
		return fmt.Errorf("a process has one adapter, webgpu:0")
	}
	quietDrivers()
	if os.Getenv(pluginVariable) == "" {
		err := o.AppendExecutionProvider("WebGPU", webGPUOptions)
		if err == nil || !strings.Contains(err.Error(), "not supported in this build") {
			return err
		}
	}
	device, err := r.webGPUPlugin()
	if err != nil {
		return err
	}
	return o.AppendExecutionProviderV2([]onnxruntime.EpDevice{device}, webGPUOptions)
}

// quietDrivers sets environment variables that keep Vulkan's drivers from printing warnings on stderr, and
// that have the plugin look for adapters even if the system lists no graphics card, as in containers, or if
// the adapter is a processor.
var quietDrivers = sync.OnceFunc(func() {
	for name, value := range map[string]string{
		"XDG_RUNTIME_DIR": os.TempDir(), "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
	} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value) // only other names and values would be an error
		}
	}
})

// pluginVariable is the environment variable that holds the path of the plugin or of its folder.
const pluginVariable = "ONNXRUNTIME_EP_WEBGPU"

const webGPUName = "WebGpuExecutionProvider"

const (
	noWebGPU  = "this ONNX Runtime has no WebGPU"
	getWebGPU = "pip install onnxruntime-ep-webgpu"
)

func pluginName() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime_providers_webgpu.dylib"
	}
	return "libonnxruntime_providers_webgpu.so"
}

// findPlugin looks for WebGPU's plugin: at the variable's path, next to the library, and in the Python
// environments to which the program may belong.
func findPlugin(library string) (string, error) {
	if path := os.Getenv(pluginVariable); path != "" {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, pluginName())
		}
		if !regular(path) {
			return "", &NoDevice{fmt.Sprintf("$%s names no plugin: %s is no file", pluginVariable, path),
				getWebGPU}
		}
		return filepath.Abs(path)
	}
	places := []string{filepath.Dir(library)}
	for _, environment := range pythons() {
		for _, site := range sitePackages(environment) {
			places = append(places, filepath.Join(site, "onnxruntime_ep_webgpu"))
		}
	}
	for _, dir := range places {
		if file := filepath.Join(dir, pluginName()); regular(file) {
			return file, nil
		}
	}
	return "", &NoDevice{noWebGPU, getWebGPU}
}

// Plugin returns the plugin with which a library computes on webgpu; "" if there is none, or if WebGPU is
// compiled into the library. It opens neither file.
func Plugin(library string) string {
	file, err := findPlugin(library)
	if err != nil || os.Getenv(pluginVariable) == "" && compiledIn(library) {
		return ""
	}
	return file
}

// compiledIn reports whether a library's file contains the name of a WebGPU option, so that WebGPU is
// compiled in.
func compiledIn(library string) bool {
	b, err := stages.ReadFile(library, maxLibrary)
	return err == nil && bytes.Contains(b, []byte("ep.webgpuexecutionprovider.powerPreference"))
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// A process registers the plugin once.
var plugin struct {
	mu     sync.Mutex // guards the fields below
	device onnxruntime.EpDevice
	found  bool
}

// webGPUPlugin registers the plugin and returns its device. The plugin may offer one for each GPU, but
// computes on the same adapter with all of them.
func (r *Runtime) webGPUPlugin() (device onnxruntime.EpDevice, err error) {
	plugin.mu.Lock()
	defer plugin.mu.Unlock()
	if plugin.found {
		return plugin.device, nil
	}
	file, err := findPlugin(r.Library.Path)
	if err != nil {
		return device, err
	}
	if err := onnxruntime.RegisterExecutionProviderLibrary("webgpu", file); err != nil {
		return device, notPlugin(file, r.Version, err)
	}
	devices, err := onnxruntime.GetEpDevices()
	if err != nil {
		return device, err
	}
	for _, d := range devices {
		if d.EpName() == webGPUName {
			plugin.device, plugin.found = d, true
			return d, nil
		}
	}
	return device, &NoDevice{fmt.Sprintf("the plugin %s offers no device", file),
		"pip install --upgrade onnxruntime-ep-webgpu"}
}

// notPlugin explains why a file can't be registered.
func notPlugin(file, version string, err error) error {
	text := err.Error()
	if strings.Contains(text, "Failed to load library") || strings.Contains(text, "Failed to get symbol") {
		return &NoDevice{fmt.Sprintf("%s is no plugin of ONNX Runtime (%s)", file,
			strings.TrimPrefix(plainly(err), file+": ")), getWebGPU}
	}
	return &NoDevice{fmt.Sprintf("the plugin %s doesn't fit ONNX Runtime %s (%s)", file, version,
		plainly(err)),
		"pip install --upgrade onnxruntime onnxruntime-ep-webgpu"}
}

// whyNoWebGPU explains why a program doesn't run on WebGPU.
func whyNoWebGPU(err error, adapters []gpu.Adapter, missing error) *NoDevice {
	var known *NoDevice
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(missing, gpu.NoLoader):
		return &NoDevice{"there is no Vulkan loader, libvulkan.so.1",
			"apt install libvulkan1, or the package vulkan-loader on other systems"}
	case errors.Is(missing, gpu.NoDriver):
		for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
			if files := os.Getenv(name); files != "" {
				return &NoDevice{"no Vulkan driver works here",
					fmt.Sprintf("%s allows only %s", name, files)}
			}
		}
		return &NoDevice{"no Vulkan driver works here",
			"install NVIDIA's, or apt install mesa-vulkan-drivers for others; vulkaninfo --summary lists " +
				"them"}
	case errors.Is(missing, gpu.NoAdapter):
		return &NoDevice{"the Vulkan driver has no adapter",
			"the GPU must be one of the driver's, and its files in /dev/dri yours to read and write"}
	}
	text := plainly(err)
	if strings.HasSuffix(text, "No supported adapters") {
		text = "it is too old for WebGPU, or lacks a feature that WebGPU needs"
	}
	return &NoDevice{fmt.Sprintf("ONNX Runtime doesn't compute on %s: %s",
		cmp.Or(describe(adapters), "this GPU"), text), "a newer driver may help"}
}
