package ort

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
)

// Kernels describes what a provider computes otherwise than a processor does in float32. The zero value is
// such a processor.
type Kernels struct {
	// Forms is a version of the programs that are emitted because of the rest. Keys hold a processor's
	// programs, so this number, the class and the precision stand for the difference: it is raised when any
	// of these programs changes.
	Forms int

	// NoIndices means that MaxPool lacks its output Indices, or that Indices or ArgMax choose another one
	// of equal elements than on a processor, or that what is scattered by them takes long, so that gradients
	// can't rely on them.
	NoIndices bool
	// Lacks lists the operators that programs may have and the provider has no kernel for. Either other
	// operators are emitted in their place, or the processor computes them, which costs copies.
	Lacks []string
	// Wrong lists the operators whose kernel is wrong in some cases. Other operators are emitted in their
	// place.
	Wrong []string
	// Half means that programs compute in float16 where that is safe: the provider computes in the types
	// that a graph has.
	Half bool
}

// halfForms is the version of the programs that compute in float16.
const halfForms = 1

// half returns the same kernels for programs in float16. Their version rises with either.
func (k Kernels) half() Kernels {
	k.Half = true
	k.Forms += halfForms
	return k
}

// A Provider describes one of ONNX Runtime's execution providers, which computes on the devices of a class.
type Provider struct {
	Class string // one of [stages.DeviceClasses]
	Name  string // ONNX Runtime's name of the provider, also in profiles

	// Kernels are those of the provider in float32.
	Kernels

	// Carry makes a session's carrier, with out as its outputs; it returns nil if the provider computes in
	// the processor's memory.
	Carry func(s *Session, out []Value) (Carrier, error)
	// OneQueue means that all sessions use one queue, which isn't safe for several threads.
	OneQueue bool

	// Precisions are those that the class has but float32.
	Precisions []Precision

	// add adds the provider to a session's options, on the device of this index; nil for the CPU provider,
	// which every session has.
	add func(r *Runtime, o *onnxruntime.SessionOptions, index int) error
	// adapters returns the adapters that drivers list, in the order of their indices.
	adapters func() ([]gpu.Adapter, error)
	// most is how many adapters the provider can use; 0: all
	most int
	// why explains a failure to compute, given the results of adapters.
	why func(err error, adapters []gpu.Adapter, missing error) *NoDevice
	// others explains how to choose an adapter beyond most.
	others string
}

// A Precision is one in which a class computes programs.
type Precision struct {
	Name string // one of [stages.Precisions]
	// Batch is the batch of all programs, where a row's results may depend on it or a program takes seconds
	// to be compiled; 0: batches are as for float32.
	Batch int
	// RoundsInputs means that programs' inputs are rounded, and so the ids of tokens.
	RoundsInputs bool
	// Unmeasured means that nobody has measured yet how much results deviate in it on a device of the class:
	// it is refused, except to programs that call [Measure].
	Unmeasured bool
	// Kernels are those of the precision.
	Kernels
	// add adds to a session's options what computes in the precision; it returns a [NoDevice] if the machine
	// or the library lacks it.
	add adder
}

// Providers lists one provider for each class of devices.
var Providers = []*Provider{
	{
		Class: "cpu", Name: "CPUExecutionProvider",
		Precisions: []Precision{{
			Name: stages.BFloat16, Batch: 3, RoundsInputs: true, add: addOpenVINO,
			Kernels: Kernels{
				Forms:     1,
				NoIndices: true,
				Wrong:     []string{"ConvTranspose", "HardSigmoid"},
			},
		}},
	},
	{
		Class: "cuda", Name: "CUDAExecutionProvider",
		Kernels: cudaKernels,
		Precisions: []Precision{
			{Name: stages.TF32, Unmeasured: true, Kernels: cudaKernels, add: addTF32},
			{Name: stages.Float16, Unmeasured: true, Kernels: cudaKernels.half(), add: onIndex(addCUDA)},
		},
		Carry: bind,
		add:   addCUDA, adapters: gpu.CUDA, why: whyNoCUDA,
	},
	{
		Class: "webgpu", Name: webGPUName,
		Kernels: webGPUKernels,
		Precisions: []Precision{
			{Name: stages.Float16, Kernels: webGPUKernels.half(), add: onIndex(addWebGPU)},
		},
		Carry: bind, OneQueue: true,
		add: addWebGPU, adapters: gpu.Vulkan, why: whyNoWebGPU,
		most: 1,
		others: "a process has one adapter, the fastest kind first: VK_DRIVER_FILES, the path of a " +
			"driver's manifest, leaves out other drivers'",
	},
}

var cudaKernels = Kernels{
	Forms:     1,
	NoIndices: true,
	Lacks: []string{"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Mean", "Sinh",
		"Tan"},
}

var webGPUKernels = Kernels{
	Forms:     1,
	NoIndices: true,
	Lacks: []string{"Celu", "Dropout", "FusedMatMul", "LRN", "LogSoftmax", "Mean", "Selu", "Shrink",
		"Sign", "Softsign", "SpaceToDepth", "Sum"},
	Wrong: []string{"InstanceNormalization", "Slice"},
}

// An adder adds to a session's options what computes on a device.
type adder func(r *Runtime, o *onnxruntime.SessionOptions, d stages.Device) error

// onIndex returns the adder of a provider that computes in the types that a graph has.
func onIndex(add func(r *Runtime, o *onnxruntime.SessionOptions, index int) error) adder {
	return func(r *Runtime, o *onnxruntime.SessionOptions, d stages.Device) error {
		return add(r, o, d.Index)
	}
}

// measuring says that [Measure] was called.
var measuring atomic.Bool

// Measure lets this process compute in unmeasured precisions, to measure them.
func Measure() { measuring.Store(true) }

// ProviderOf returns the provider of a class.
func ProviderOf(class string) *Provider {
	return Providers[slices.IndexFunc(Providers, func(p *Provider) bool { return p.Class == class })]
}

// In returns the class's row of a precision, nil for float32, or a [NoDevice] if it has none.
func (p *Provider) In(precision string) (*Precision, error) {
	if precision == "" || precision == stages.Float32 {
		return nil, nil
	}
	names, why := []string{stages.Float32}, "%[1]s doesn't compute in %[2]s"
	for i := range p.Precisions {
		row := &p.Precisions[i]
		switch {
		case row.Unmeasured && !measuring.Load():
			if row.Name == precision {
				why = "%[2]s isn't measured on %[1]s yet"
			}
		case row.Name == precision:
			return row, nil
		default:
			names = append(names, row.Name)
		}
	}
	return nil, &NoDevice{fmt.Sprintf(why, p.Class, precision), "precision: " + strings.Join(names, " or ")}
}

// KernelsIn returns the kernels of a precision, the provider's own in one that the class hasn't.
func (p *Provider) KernelsIn(precision string) Kernels {
	if row, err := p.In(precision); err == nil && row != nil {
		return row.Kernels
	}
	return p.Kernels
}

func (r *Runtime) addProvider(o *onnxruntime.SessionOptions, d stages.Device) error {
	p := ProviderOf(d.Class)
	precision, err := p.In(d.Precision)
	switch {
	case err != nil:
		return err
	case precision != nil:
		return keepingHandlers(func() error { return precision.add(r, o, d) })
	}
	if p.add == nil {
		return nil
	}
	return keepingHandlers(func() error { return p.add(r, o, d.Index) })
}

// started holds the classes of which this process has made a session.
var started sync.Map

// starting is called before a session of a class is made, and its result after that. The first session of a
// class starts its drivers, whose messages are muted.
func starting(class string) (done func()) {
	if _, before := started.LoadOrStore(class, true); before || ProviderOf(class).add == nil {
		return func() {}
	}
	return mute()
}

// A NoDevice is the error of a device that can't be used, for people to read.
type NoDevice struct {
	Reason string // "there is no Vulkan driver"
	Remedy string // a command, or another remedy
}

func (e *NoDevice) Error() string { return strings.TrimSuffix(e.Reason+": "+e.Remedy, ": ") }

// absent returns the error for a device of the class whose index is too high.
func (p *Provider) absent(d stages.Device, usable int, others []gpu.Adapter) *NoDevice {
	switch {
	case len(others) > 0:
		return &NoDevice{fmt.Sprintf("%s can't be chosen by number, as only %s:0 can", d, p.Class), p.others}
	case usable == 1:
		return &NoDevice{Reason: fmt.Sprintf("there is no %s, only %s:0", d, p.Class)}
	}
	return &NoDevice{Reason: fmt.Sprintf("there is no %s, only %s:0 to %[2]s:%d", d, p.Class, usable-1)}
}

// blame matches the beginning of a library's message: the place in its source, and the condition that
// failed.
var blame = regexp.MustCompile(`(?s)^.*(was false\. |Status value: \d+, message: |` +
	`\[ONNXRuntimeError\] : \d+ : \w+ : |with error: |\.(cc|h|cpp):\d+ \S+ )`)

// plainly returns an error's first line without such a beginning.
func plainly(err error) string {
	text, _, _ := strings.Cut(strings.TrimSpace(blame.ReplaceAllString(err.Error(), "")), "\n")
	return text
}
