package ort

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// A Session is a loaded model. Several runs may use it at a time; each uses its caller's thread, and all
// share the session's other threads.
type Session struct {
	session *onnxruntime.DynamicAdvancedSession
	inputs  []string
	outputs []string
	fresh   atomic.Bool // it hasn't run, so its provider may still start drivers

	carry    func(s *Session, out []Value) (Carrier, error) // the provider's
	turns    *turns                                         // the device's
	bindings sync.Map                                       // the open ones

	account *account // admits the session's runs; nil if nothing does
	need    int64    // bytes that a run needs
	kind    runKind
	loaded  int64 // bytes that the model takes

	worker *worker // the process that has loaded the model; nil: this one
	number int     // the session's number there

	recording recording
}

// NewSession loads a model onto a device, with inputs and outputs in the order of the names. The fusions in
// disabled are switched off.
func (r *Runtime) NewSession(model []byte, inputs, outputs []string, d stages.Device,
	disabled ...string) (*Session, error) {
	return r.newSession(model, inputs, outputs, d, disabled)
}

// readerDependent are the library's fusions that depend on whether another node reads a value between the
// fused ones, and that change the last bits of results.
var readerDependent = append([]string{
	"BiasGeluFusion", "BiasSoftmaxFusion", "ConvAddActivationFusion", "FastGeluFusion", "GeluFusionL2",
	"GemmActivationFusion", "MatMulActivationFusion", "MatMulScaleFusion", "MatmulTransposeFusion",
	"QuickGeluFusion", "SkipLayerNormFusion",
}, ruleDependent...)

// NewCanonicalSession is NewSession for models that contain the same nodes among different others: these
// nodes give the same bits in every model. One exception is known: a Conv whose only reader is an Add. If
// something else reads the Conv too, the sum's last bits may differ.
func (r *Runtime) NewCanonicalSession(model []byte, inputs, outputs []string, d stages.Device,
	disabled ...string) (*Session, error) {
	return r.newSession(model, inputs, outputs, d, DisabledFusions(true, disabled...))
}

// DisabledFusions returns the fusions that are disabled in a session.
func DisabledFusions(canonical bool, disabled ...string) []string {
	if canonical {
		return slices.Concat(readerDependent, disabled)
	}
	return disabled
}

// NewPlainSession loads a model onto the CPU without any optimisation. Unknown models must be loaded like
// this: kernels check their inputs, whereas optimisers rely on them and may crash the process.
func (r *Runtime) NewPlainSession(model []byte, inputs, outputs []string) (*Session, error) {
	if r.worker != nil {
		return r.worker.load(&message{Plain: true, Inputs: inputs, Outputs: outputs}, model)
	}
	o, err := cpuOptions(func(o *onnxruntime.SessionOptions) error {
		return o.SetGraphOptimizationLevel(onnxruntime.GraphOptimizationLevelDisableAll)
	})
	if err != nil {
		return nil, err
	}
	defer o.Destroy()
	return openSession(model, inputs, outputs, o)
}

func (r *Runtime) newSession(model []byte, inputs, outputs []string, d stages.Device,
	disabled []string) (*Session, error) {
	var a *account
	if r.needs != (Needs{}) {
		var err error
		if a, err = theAccount(); err != nil {
			return nil, err
		}
	}
	if r.worker != nil {
		s, err := r.worker.load(&message{Inputs: inputs, Outputs: outputs, Device: &d, Disabled: disabled,
			Profiled: r.profiled, Alone: r.alone}, model)
		if err == nil {
			s.account, s.need, s.kind = a, r.needs.Run, apartRun
		}
		return s, err
	}
	defer starting(d.Class)()
	turns := turnsOf(d)
	defer turns.call()()
	kind := a.kind(r.needs.Run)
	o, err := r.sessionOptions(d, kind == pooledRun)
	if err != nil {
		return nil, err
	}
	defer o.Destroy()
	if disabled != nil {
		if err := o.AddSessionConfigEntry(disable, strings.Join(disabled, ";")); err != nil {
			return nil, err
		}
	}
	if r.alone {
		if err := o.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"); err != nil {
			return nil, err
		}
	}
	leave, err := a.load(int64(len(model)), r.needs.Kept)
	if err != nil {
		return nil, err
	}
	defer leave()
	rec, err := r.record(o)
	if err != nil {
		return nil, err
	}
	s, err := openSession(model, inputs, outputs, o)
	if err != nil {
		return nil, errors.Join(err, rec.remove())
	}
	s.recording, s.carry, s.turns = rec, ProviderOf(d.Class).Carry, turns
	if a != nil {
		s.account, s.need, s.kind, s.loaded = a, r.needs.Run, kind, int64(len(model))+r.needs.Kept
		a.loaded.Add(s.loaded)
	}
	return s, nil
}

var errNoEnds = errors.New("a session needs an input and an output")

func openSession(model []byte, inputs, outputs []string, o *onnxruntime.SessionOptions) (*Session, error) {
	if len(inputs) == 0 || len(outputs) == 0 {
		return nil, errNoEnds
	}
	s := &Session{inputs: inputs, outputs: outputs}
	s.fresh.Store(true)
	err := keepingHandlers(func() (err error) {
		s.session, err = onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, o)
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	return s, nil
}

// sessionOptions returns the options of a program on a device. Unless its memory is pooled, it is returned
// to the system after every run.
func (r *Runtime) sessionOptions(d stages.Device, pooled bool) (*onnxruntime.SessionOptions, error) {
	o, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	steps := []func() error{
		func() error { return o.SetGraphOptimizationLevel(onnxruntime.GraphOptimizationLevelEnableAll) },
		func() error { return o.SetExecutionMode(onnxruntime.ExecutionModeSequential) },
		func() error { return o.SetIntraOpNumThreads(d.Threads) },
		func() error { return o.SetInterOpNumThreads(1) },
		func() error { return o.SetLogSeverityLevel(onnxruntime.LoggingLevelFatal) },
		// Between runs the session's threads sleep instead of spinning until the next run.
		func() error { return o.AddSessionConfigEntry("session.force_spinning_stop", "1") },
	}
	if pooled {
		steps = append(steps,
			func() error { return o.AddSessionConfigEntry("session.use_env_allocators", "1") })
	} else {
		steps = append(steps, func() error {
			return errors.Join(o.SetCpuMemArena(false),
				o.SetMemPattern(false))
		})
	}
	steps = append(steps, func() error { return r.addProvider(o, d) })
	for _, step := range steps {
		if err := step(); err != nil {
			o.Destroy()
			return nil, fmt.Errorf("device %s: %w", d, err)
		}
	}
	return o, nil
}

// Run feeds in and fills out. It returns the context's cause soon after ctx is cancelled, and an error that
// wraps [stages.ErrOutOfMemory] if memory runs out.
func (s *Session) Run(ctx context.Context, in, out []Value) error {
	if s.account != nil {
		admitted, leave, err := s.account.admit(ctx, s.need, s.kind)
		if err != nil {
			return err
		}
		defer leave()
		ctx = admitted
	}
	if s.worker == nil {
		defer s.turns.call()()
		defer s.turns.run()()
		return s.run(ctx, in, values(out))
	}
	if err := s.takes(len(in), len(out)); err != nil {
		return err
	}
	shapes := make([]array, len(out))
	for i, v := range out {
		shapes[i], _ = v.array()
	}
	reply, err := s.worker.run(ctx, s.number, in, shapes)
	if err != nil {
		return err
	}
	for i, v := range out {
		_, b := v.array()
		copy(b, reply.blobs[i])
	}
	return nil
}

// takes returns an error if the model has another number of inputs or outputs.
func (s *Session) takes(in, out int) error {
	if in != len(s.inputs) || out != len(s.outputs) {
		return fmt.Errorf("the model has %d inputs and %d outputs, not %d and %d", len(s.inputs),
			len(s.outputs), in, out)
	}
	return nil
}

// run is Run with ONNX Runtime's values, and creates the outputs that are nil.
func (s *Session) run(ctx context.Context, in []Value, out []onnxruntime.Value) error {
	if err := s.takes(len(in), len(out)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o, err := onnxruntime.NewRunOptions()
	if err != nil {
		return err
	}
	// AfterFunc's function may still be running when stop returns, so it and the destruction of the options
	// take a mutex.
	var mu sync.Mutex // guards o
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		_ = o.Terminate() // an error only if the run is over
	})
	err = s.first(func() error { return s.session.RunWithOptions(values(in), out, o) })
	stop()
	mu.Lock()
	defer mu.Unlock()
	o.Destroy()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return explain(err)
}

// first runs a session, and restores the signal handlers if the first run, which may start a provider,
// replaces them.
func (s *Session) first(run func() error) error {
	if !s.fresh.Load() {
		return run()
	}
	defer s.fresh.Store(false)
	return keepingHandlers(run)
}

// A Result is an output whose shape the session determined.
type Result[T Element] struct {
	Data  []T // in C order
	Shape []int
}

// Fetch runs a session on a processor and returns its outputs, whose elements must be of type T.
func Fetch[T Element](ctx context.Context, s *Session, in []Value) ([]Result[T], error) {
	if s.worker != nil {
		reply, err := s.worker.run(ctx, s.number, in, nil)
		if err != nil {
			return nil, err
		}
		results := make([]Result[T], len(reply.Arrays))
		for i, a := range reply.Arrays {
			if a.Of != typeName[T]() {
				return nil, fmt.Errorf("output %d doesn't consist of %T", i, *new(T))
			}
			results[i] = Result[T]{numbersOf[T](reply.blobs[i]), a.Shape}
		}
		return results, nil
	}
	out := make([]onnxruntime.Value, len(s.outputs))
	defer destroy(out)
	if err := s.run(ctx, in, out); err != nil {
		return nil, err
	}
	results := make([]Result[T], len(out))
	for i, v := range out {
		t, ok := v.(*onnxruntime.Tensor[T])
		if !ok {
			return nil, fmt.Errorf("output %d doesn't consist of %T", i, *new(T))
		}
		results[i] = Result[T]{slices.Clone(t.GetData()), shapeOf(t.GetShape())}
	}
	return results, nil
}

// Discard runs a session of this process on a processor, whatever the types of its outputs, and returns none
// of them: to measure the time.
func (s *Session) Discard(ctx context.Context, in []Value) error {
	out := make([]onnxruntime.Value, len(s.outputs))
	defer destroy(out)
	return s.run(ctx, in, out)
}

func shapeOf(s onnxruntime.Shape) (dims []int) {
	for _, d := range s {
		dims = append(dims, int(d))
	}
	return dims
}

// Close releases the session.
func (s *Session) Close() error {
	if s.worker != nil {
		_, err := s.worker.call(context.Background(), &message{Do: doUnload, Session: s.number})
		var gone *Fault
		if errors.As(err, &gone) {
			return nil
		}
		return err
	}
	if s.account != nil {
		s.account.loaded.Add(-s.loaded)
	}
	defer s.turns.call()()
	return errors.Join(s.closeBindings(), s.session.Destroy(), s.recording.remove())
}

// outOfMemory matches the messages of libraries for which fewer rows would fit. The last three are Dawn's:
// a buffer that couldn't be allocated, a buffer beyond a limit of the device, and one in so many parts that
// no shader takes them.
var outOfMemory = regexp.MustCompile(`(?i)failed to allocate memory|bad_alloc|out of ` +
	`memory|ALLOC_FAILED|AllocateRawInternal|` +
	`\[Invalid Buffer.*\] is invalid due to a previous error|exceeds the max buffer size limit|` +
	`Too many storage buffers in shader`)

// lostDevice matches the messages of CUDA, Dawn and the libraries below for a device that this process
// can't use any more: after a driver's reset, the loss of a card, or a kernel's fault, which no CUDA
// context survives.
var lostDevice = regexp.MustCompile(`CUDA (?:failure|error) (?:46|214|220|700|702|709|71[04-9]|999)\b|` +
	`cudaErrorDevicesUnavailable|unspecified launch failure|\bXid\b|fallen off the bus|` +
	`(?i:device (?:is |was )?lost|\[device[^\]]*\] is lost)|` +
	`DXGI_ERROR_DEVICE_(?:REMOVED|HUNG|RESET)|VK_ERROR_DEVICE_LOST`)

// preamble is the beginning of every message of the library and its wrapper.
var preamble = regexp.MustCompile(`^(Error (running network|creating C session): )+`)

func explain(err error) error {
	text := preamble.ReplaceAllString(err.Error(), "")
	switch {
	case lostDevice.MatchString(text):
		return fmt.Errorf("%w: %s", stages.ErrDeviceLost, strings.TrimSuffix(plainly(err), "."))
	case outOfMemory.MatchString(text):
		return fmt.Errorf("%w: %s", stages.ErrOutOfMemory, text)
	case strings.Contains(text, "requires f16 but the device does not support it"):
		return &NoDevice{"this adapter of WebGPU doesn't compute in float16: it lacks shader-f16",
			"precision: float32"}
	}
	return fmt.Errorf("ONNX Runtime: %s", text)
}

// destroy releases the library's values. The wrapper leaves a nil pointer for a value that it can't hold,
// such as an empty one.
func destroy(values []onnxruntime.Value) {
	for _, v := range values {
		if v != nil && !reflect.ValueOf(v).IsNil() {
			v.Destroy()
		}
	}
}
