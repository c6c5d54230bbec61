package ort

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// patience is how long a driver may take to answer. The first start of a GPU takes seconds.
var patience = time.Minute

// An Adapter is a GPU as its driver describes it.
type Adapter = gpu.Adapter

// Devices returns the adapters of a class, in the order of its devices' indices. If the class has a single
// device, others are the adapters that it takes when it can't use the first. Each usable device has
// computed a product. If [UseWorkers] has set a command, a worker process asks the drivers, since they may
// crash, hang or print. The error is a [NoDevice] if the machine is the reason.
func (r *Runtime) Devices(class string) (usable, others []gpu.Adapter, err error) {
	p := ProviderOf(class)
	if p.add == nil {
		return nil, nil, nil
	}
	apart, err := r.inProcess(Limits{}, nil)
	if err != nil {
		return nil, nil, err
	}
	defer apart.Close()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, &NoDevice{
		fmt.Sprintf("the driver hasn't answered for %v", patience), "restart it, or the machine"})
	defer cancel()
	adapters, missing := apart.ask(ctx, p)
	err = apart.try(ctx, stages.Device{Class: class, Threads: 1})
	var known *NoDevice
	var gone *Fault
	switch {
	case err == nil && len(adapters) == 0: // only the provider knows the adapter
		return []gpu.Adapter{{Name: "the system's GPU"}}, nil, nil
	case err == nil && p.most > 0:
		n := min(p.most, len(adapters))
		return adapters[:n], adapters[n:], nil
	case err == nil:
		return adapters, nil, nil
	case errors.As(err, &known):
		return nil, nil, known
	case errors.As(err, &gone):
		name := describe(adapters)
		if name != "" {
			name = " of " + name
		}
		reason := fmt.Sprintf("the driver%s ends the process that uses it: %s", name, gone.how)
		return nil, nil, &NoDevice{reason,
			"another version of the driver may help"}
	}
	return nil, nil, p.why(err, adapters, missing)
}

// Adapters returns the adapters of devices of one class, none for processors, or an error as
// [Runtime.Devices] does.
func (r *Runtime) Adapters(devices ...stages.Device) (used []gpu.Adapter, err error) {
	class := devices[0].Class
	if ProviderOf(class).add == nil {
		return nil, nil
	}
	usable, others, err := r.Devices(class)
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if d.Index >= len(usable) {
			return nil, ProviderOf(class).absent(d, len(usable), others)
		}
		used = append(used, usable[d.Index])
	}
	return used, nil
}

// ask returns the adapters that a class's drivers list.
func (r *Runtime) ask(ctx context.Context, p *Provider) ([]gpu.Adapter, error) {
	if r.worker == nil {
		return p.adapters()
	}
	reply, err := r.worker.call(ctx, &message{Do: doAsk, Class: p.Class})
	if err != nil {
		return nil, err
	}
	if reply.Missing != 0 {
		return nil, reply.Missing
	}
	return reply.Adapters, nil
}

// try computes on a device: 2 × 3, as a convolution, since providers use separate libraries for these.
func (r *Runtime) try(ctx context.Context, d stages.Device) error {
	if r.worker != nil {
		_, err := r.worker.call(ctx, &message{Do: doTry, Device: &d})
		return err
	}
	model, err := tripler(ProviderOf(d.Class).KernelsIn(d.Precision).Half)
	if err != nil {
		return err
	}
	s, err := r.NewSession(model, []string{"x"}, []string{"y"}, d)
	if err != nil {
		return err
	}
	defer s.Close()
	x, errX := NewTensor[float32](r, 1, 1, 1, 1)
	y, errY := NewTensor[float32](r, 1, 1, 1, 1)
	if err := errors.Join(errX, errY); err != nil {
		return err
	}
	defer x.Close()
	defer y.Close()
	x.Data[0] = 2
	if err := s.Run(ctx, []Value{x}, []Value{y}); err != nil {
		return err
	}
	if !slices.Equal(y.Data, []float32{6}) {
		return fmt.Errorf("2 × 3 is %g there", y.Data)
	}
	return nil
}

// tripler returns a model that multiplies an image of one pixel by 3, in float16 if half.
func tripler(half bool) ([]byte, error) {
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{Name: "tripler"},
	}}
	f := m.Fragment()
	x, three := "x", f.Floats("three", []float32{3}, 1, 1, 1, 1)
	cast := func(v string, to onnxpb.TensorProto_DataType) string {
		if !half {
			return v
		}
		return f.Op("Cast", []string{v}, onnx.Attr{Name: "to", Value: int(to)})
	}
	x, three = cast(x, onnxpb.TensorProto_FLOAT16), cast(three, onnxpb.TensorProto_FLOAT16)
	y := f.Op("Conv", []string{x, three})
	f.OpTo("y", "Identity", []string{cast(y, onnxpb.TensorProto_FLOAT)})
	m.After(f)
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{1, 1, 1, 1}, Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT})
	return m.Encode()
}

// Has returns nil if a device computes in its precision, and otherwise an error, a [NoDevice] if the machine
// or the library lacks something. Where only a program shows it, one is computed as [Runtime.Devices] does.
func (r *Runtime) Has(d stages.Device) error {
	row, err := ProviderOf(d.Class).In(d.Precision)
	if err != nil {
		return err
	}
	if row == nil || !row.Half {
		o, err := onnxruntime.NewSessionOptions()
		if err != nil {
			return err
		}
		defer o.Destroy()
		return r.addProvider(o, d)
	}
	apart, err := r.inProcess(Limits{}, nil)
	if err != nil {
		return err
	}
	defer apart.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d.Threads = 1
	return apart.try(ctx, d)
}
