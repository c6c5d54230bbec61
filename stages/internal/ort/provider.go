package ort

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
)

// A Provider is what ONNX Runtime calls an execution provider: it computes on the devices of a class.
type Provider struct {
	Class string // of [stages.DeviceClasses]
	Name  string // that ONNX Runtime gives it, in profiles too

	// Forms numbers what is emitted for the class and not for a processor, whose programs stand in keys: it
	// is raised when any of that changes, and names with the class what made a result.
	Forms int

	// NoIndices says that MaxPool lacks its output Indices, or that these and ArgMax take another one of
	// equal elements than the processor, so that gradients aren't to rely on them.
	NoIndices bool
	// Lacks are operators that programs may have and the provider has no kernel for. Either others are
	// emitted in their place, or the processor computes them, which costs copies.
	Lacks []string
	// Wrong are operators whose kernel is wrong in some cases. Others are emitted in their place.
	Wrong []string

	// Carry makes a carrier for a session, whose outputs are out; nil if its memory is the processor's.
	Carry func(s *Session, out []Value) (Carrier, error)
	// OneQueue says that all sessions use one queue, which isn't safe for several threads.
	OneQueue bool

	// add adds the provider to a session's options, on one of its devices; nil for the one that is always
	// there.
	add func(r *Runtime, o *onnxruntime.SessionOptions, index int) error
	// adapters returns those that drivers tell of, in the order of their indices.
	adapters func() ([]gpu.Adapter, error)
	// most is how many adapters the provider can use, 0 if all.
	most int
	// why explains a failure to compute, given what adapters returned.
	why func(err error, adapters []gpu.Adapter, missing error) *NoDevice
	// others says how an adapter beyond most is chosen.
	others string
}

// Providers has one provider for each class of devices.
var Providers = []*Provider{
	{Class: "cpu", Name: "CPUExecutionProvider"},
	{
		Class: "cuda", Name: "CUDAExecutionProvider",
		Forms:     1,
		NoIndices: true,
		Lacks: []string{"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Mean", "Sinh",
			"Tan"},
		Carry: bind,
		add:   addCUDA, adapters: gpu.CUDA, why: whyNoCUDA,
	},
	{
		Class: "webgpu", Name: webGPUName,
		Forms:     1,
		NoIndices: true,
		Lacks: []string{"Celu", "Dropout", "FusedMatMul", "LRN", "LogSoftmax", "Mean", "Selu", "Shrink",
			"Sign", "Softsign", "SpaceToDepth", "Sum"},
		Wrong: []string{"InstanceNormalization", "Slice"},
		Carry: bind, OneQueue: true,
		add: addWebGPU, adapters: gpu.Vulkan, why: whyNoWebGPU,
		most: 1,
		others: "a process has one adapter, the fastest kind first: VK_DRIVER_FILES, the path of a " +
			"driver's manifest, leaves out other drivers'",
	},
}

// ProviderOf returns the provider of a class.
func ProviderOf(class string) *Provider {
	return Providers[slices.IndexFunc(Providers, func(p *Provider) bool { return p.Class == class })]
}

func (r *Runtime) addProvider(o *onnxruntime.SessionOptions, d stages.Device) error {
	p := ProviderOf(d.Class)
	if p.add == nil {
		return nil
	}
	return keepingHandlers(func() error { return p.add(r, o, d.Index) })
}

// started has the classes of which this process has made a session.
var started sync.Map

// starting is called before a session of a class is made, and what it returns behind that. The first one
// starts the class's drivers, which is done quietly.
func starting(class string) (done func()) {
	if _, before := started.LoadOrStore(class, true); before || ProviderOf(class).add == nil {
		return func() {}
	}
	return mute()
}

// A NoDevice is the error of a device that can't be had: a sentence for people.
type NoDevice struct {
	Reason string // "there is no Vulkan driver"
	Remedy string // a command, or what else would help
}

func (e *NoDevice) Error() string { return strings.TrimSuffix(e.Reason+": "+e.Remedy, ": ") }

// absent is the error of a device that a class lacks which has the given number of them.
func (p *Provider) absent(d stages.Device, usable int, others []gpu.Adapter) *NoDevice {
	switch {
	case len(others) > 0:
		return &NoDevice{fmt.Sprintf("%s can't be chosen by number, as only %s:0 can", d, p.Class), p.others}
	case usable == 1:
		return &NoDevice{Reason: fmt.Sprintf("there is no %s, only %s:0", d, p.Class)}
	}
	return &NoDevice{Reason: fmt.Sprintf("there is no %s, only %s:0 to %[2]s:%d", d, p.Class, usable-1)}
}

// blame is what libraries put before a sentence: where it arose, and the condition that wasn't met.
var blame = regexp.MustCompile(`(?s)^.*(was false\. |Status value: \d+, message: |` +
	`\[ONNXRuntimeError\] : \d+ : \w+ : |with error: |\.(cc|h|cpp):\d+ \S+ )`)

// plainly returns what an error says, in one line, without the places where it arose.
func plainly(err error) string {
	text, _, _ := strings.Cut(strings.TrimSpace(blame.ReplaceAllString(err.Error(), "")), "\n")
	return text
}
