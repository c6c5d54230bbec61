package ort

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
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
	if os.Getenv(webGPU.variable) == "" {
		err := o.AppendExecutionProvider("WebGPU", webGPUOptions)
		if err == nil || !strings.Contains(err.Error(), "not supported in this build") {
			return err
		}
	}
	// The plugin may offer a device for each GPU, but computes on the same adapter with all of them.
	devices, err := webGPU.devices(r)
	if err != nil {
		return err
	}
	return o.AppendExecutionProviderV2(devices[:1], webGPUOptions)
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

const webGPUName = "WebGpuExecutionProvider"

var webGPU = plugin{
	name: "webgpu", provider: webGPUName, module: "onnxruntime_ep_webgpu",
	file:     "libonnxruntime_providers_webgpu",
	variable: "ONNXRUNTIME_EP_WEBGPU",
	lacking:  "this ONNX Runtime has no WebGPU",
	get:      "pip install onnxruntime-ep-webgpu",
}

// Plugin returns the plugin with which a library computes on webgpu; "" if there is none, or if WebGPU is
// compiled into the library. It opens neither file.
func Plugin(library string) string {
	file, err := webGPU.find(library)
	if err != nil || os.Getenv(webGPU.variable) == "" && compiledIn(library) {
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
