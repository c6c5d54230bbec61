package ort

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	onnxruntime "github.com/yalue/onnxruntime_go"
	processor "golang.org/x/sys/cpu"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/ortapi"
)

// OpenVINO computes programs on processors in bfloat16. It isn't used for float32: its results in that
// precision were wrong for a vision transformer, without an error.
var openVINO = plugin{
	name: "openvino", provider: "OpenVINOExecutionProvider", module: "onnxruntime_ep_openvino",
	file:     "libonnxruntime_providers_openvino_plugin",
	variable: "ONNXRUNTIME_EP_OPENVINO",
	lacking:  "OpenVINO's plugin of ONNX Runtime isn't found, which computes in bfloat16 on processors",
	get:      "pip install 'runexp_xai[openvino]'",
	register: registerOpenVINO,
}

// registerOpenVINO registers the plugin, also where the processor isn't Intel's.
func registerOpenVINO(r *Runtime, name, file string) error {
	register := func() error { return onnxruntime.RegisterExecutionProviderLibrary(name, file) }
	known, err := onnxruntime.GetEpDevices()
	if err != nil {
		return err
	}
	for _, device := range known {
		if ortapi.IsIntels(r.Library.Path, handleOf(device)) {
			return register()
		}
	}
	return ortapi.AsIntel(r.Library.Path, register)
}

// handleOf returns the OrtEpDevice of a device, which is its only field.
func handleOf(device onnxruntime.EpDevice) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&device))
}

// OpenVINO returns the plugin with which a library computes bfloat16 on a processor; "" if there is none.
func OpenVINO(library string) string {
	file, err := openVINO.find(library)
	if err != nil {
		return ""
	}
	return file
}

// noBFloat16 is the error of a processor that has no instructions for bfloat16: it would be slower than in
// float32. It is replaced in tests.
var noBFloat16 = func() error {
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return &NoDevice{"OpenVINO's plugin, which computes in bfloat16, exists for Linux on x86-64 alone",
			"write precision: float32, or use another machine"}
	case !processor.X86.HasAVX512BF16 && !processor.X86.HasAMXBF16:
		return &NoDevice{"this processor lacks the instructions for bfloat16, AVX512-BF16 or AMX",
			"write precision: float32, or use another machine"}
	}
	return nil
}

// addOpenVINO adds the plugin, on the processor.
func addOpenVINO(r *Runtime, o *onnxruntime.SessionOptions, d stages.Device) error {
	if err := noBFloat16(); err != nil {
		return err
	}
	return addOpenVINOIn(r, o, d, "bf16")
}

// streamsOf returns how many runs of a session OpenVINO computes at a time, and the threads of all: as many
// as slots of these threads fit on the processor's cores, because slots share a session.
func streamsOf(d stages.Device, cores int) (streams, threads int) {
	if d.Threads <= 0 {
		return 1, cores
	}
	streams = max(1, cores/d.Threads)
	return streams, streams * d.Threads
}

// addOpenVINOIn does so in one of OpenVINO's precisions. Programs with a backward pass have no snippets,
// which fuse nodes that are computed element by element: compiling them crashed for the derivative of a
// probability. Others keep them: curves' ranks, and images on their way to the net, stay exact in them.
func addOpenVINOIn(r *Runtime, o *onnxruntime.SessionOptions, d stages.Device, precision string) error {
	devices, err := openVINO.devices(r)
	if err != nil {
		return err
	}
	for _, device := range devices {
		if !ortapi.IsProcessor(r.Library.Path, handleOf(device)) {
			continue
		}
		streams, threads := streamsOf(d, runtime.GOMAXPROCS(0))
		more := ""
		if d.Backward {
			more = `,"SNIPPETS_MODE":"DISABLE"`
		}
		return o.AppendExecutionProviderV2([]onnxruntime.EpDevice{device}, map[string]string{
			"load_config": fmt.Sprintf(`{"CPU":{"INFERENCE_PRECISION_HINT":"%s","NUM_STREAMS":"%d",`+
				`"INFERENCE_NUM_THREADS":"%d"%s}}`, precision, streams, threads, more),
		})
	}
	return errors.New("OpenVINO's plugin offers no processor")
}
