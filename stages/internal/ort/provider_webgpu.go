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

// webGPUOptions are what results depend on; that they are the library's defaults today may change.
var webGPUOptions = map[string]string{
	// Of several adapters a discrete one is preferred.
	"powerPreference": "high-performance",
	// A buffer beyond a limit of the device is an error. Without validation it would be undefined results;
	// "full" checks the library's own shaders, too, at each call.
	"validationMode": "basic",
}

// addWebGPU adds the provider that is compiled into the library, or else the plugin, which a variable may
// prefer. Both have one adapter a process, which Dawn, their implementation of WebGPU, chooses.
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

// quietDrivers sets what keeps Vulkan's drivers from complaining on stderr, and has the plugin look for
// adapters where the system lists no graphics card, as in containers, or where the processor is one.
var quietDrivers = sync.OnceFunc(func() {
	for name, value := range map[string]string{
		"XDG_RUNTIME_DIR": os.TempDir(), "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
	} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value) // an error only for names and values that these aren't
		}
	}
})

// pluginVariable is the environment variable that says where the plugin is: its file, or its folder.
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

// findPlugin looks for WebGPU's plugin: where the variable says, next to the library, and in the Python
// environments that the program may belong to.
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

// Plugin returns the file of the plugin with which a library computes on webgpu; "" if there is none, or none
// is needed, as WebGPU is compiled into the library. Nothing is opened.
func Plugin(library string) string {
	file, err := findPlugin(library)
	if err != nil || os.Getenv(pluginVariable) == "" && compiledIn(library) {
		return ""
	}
	return file
}

// compiledIn reports whether a library's file shows that WebGPU is compiled in: the name of an option.
func compiledIn(library string) bool {
	b, err := stages.ReadFile(library, maxLibrary)
	return err == nil && bytes.Contains(b, []byte("ep.webgpuexecutionprovider.powerPreference"))
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// plugin is registered once a process.
var plugin struct {
	mu     sync.Mutex // guards the rest
	device onnxruntime.EpDevice
	found  bool
}

// webGPUPlugin registers the plugin and returns its device. It may have one for each GPU, but computes on the
// same adapter with all of them.
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
			"apt install libvulkan1, or what other systems call vulkan-loader"}
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
		text = "it is too old for WebGPU, or lacks what WebGPU needs"
	}
	return &NoDevice{fmt.Sprintf("ONNX Runtime doesn't compute on %s: %s",
		cmp.Or(describe(adapters), "this GPU"), text), "a newer driver may help"}
}
