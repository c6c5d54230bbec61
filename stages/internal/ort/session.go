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

// A Session is a loaded model. Several runs may go through it at a time; they share its threads, but for the
// one each was called on.
type Session struct {
	session *onnxruntime.DynamicAdvancedSession
	inputs  []string
	outputs []string
	fresh   atomic.Bool // it hasn't run, and its provider may yet start what it needs

	carry    func(s *Session, out []Value) (Carrier, error) // of its provider
	turns    *turns                                         // of its device
	bindings sync.Map                                       // the open ones

	account *account // that admits its runs, nil if nobody does
	need    int64    // bytes that a run needs
	kind    runKind
	loaded  int64 // bytes that the model takes

	worker *worker // that has loaded it instead; nil is this process
	number int     // there

	recording recording
}

// NewSession loads a model onto a device. Names fix the order of inputs and of outputs. The library's fusions
// in disabled aren't done.
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

// NewCanonicalSession is NewSession for models that hold the same nodes among different others: what those
// compute has the same bits in every model. One exception is known, a Conv whose only reader is an Add: where
// something else reads it too, the sum's last bits may differ.
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

// NewPlainSession loads a model onto the CPU without any optimisation. Unknown models are to be loaded so:
// kernels check their inputs, where optimisers rely on them and may crash the process.
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

// sessionOptions returns the options of a program on a device. Its memory, if it isn't pooled, is the
// system's again after every run.
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
		// Between runs the session's threads leave the processor to others, instead of waiting in a loop for
		// the next.
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
// wraps [stages.ErrOutOfMemory] for lack of memory.
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

// takes refuses another number of inputs and outputs than the model has.
func (s *Session) takes(in, out int) error {
	if in != len(s.inputs) || out != len(s.outputs) {
		return fmt.Errorf("the model has %d inputs and %d outputs, not %d and %d", len(s.inputs),
			len(s.outputs), in, out)
	}
	return nil
}

// run does the same, and makes what is nil in out.
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
	// AfterFunc's function may still be running when stop returns, so the options are destroyed under a mutex
	// that it takes too.
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

// first runs a session, with more care if it is the first time.
func (s *Session) first(run func() error) error {
	if !s.fresh.Load() {
		return run()
	}
	defer s.fresh.Store(false)
	return keepingHandlers(run)
}

// A Result is what a session returned, of the shape that it found out.
type Result[T Element] struct {
	Data  []T // in C order
	Shape []int
}

// Fetch runs a session on a processor and returns its outputs, which must consist of T.
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

// outOfMemory is what libraries say where fewer rows would fit: the last three are Dawn's, of a buffer that
// couldn't be had, one beyond a limit of the device, and one in so many parts that no shader takes them.
var outOfMemory = regexp.MustCompile(`(?i)failed to allocate memory|bad_alloc|out of ` +
	`memory|ALLOC_FAILED|AllocateRawInternal|` +
	`\[Invalid Buffer.*\] is invalid due to a previous error|exceeds the max buffer size limit|` +
	`Too many storage buffers in shader`)

// lostDevice is what CUDA, Dawn and the libraries below it say of a device that this process can't use any
// more: a driver that was reset, a card that is gone, or a kernel's fault, which no context of CUDA outlives.
var lostDevice = regexp.MustCompile(`CUDA (?:failure|error) (?:46|214|220|700|702|709|71[04-9]|999)\b|` +
	`cudaErrorDevicesUnavailable|unspecified launch failure|\bXid\b|fallen off the bus|` +
	`(?i:device (?:is |was )?lost|\[device[^\]]*\] is lost)|` +
	`DXGI_ERROR_DEVICE_(?:REMOVED|HUNG|RESET)|VK_ERROR_DEVICE_LOST`)

// preamble is what the library and its wrapper put before what happened.
var preamble = regexp.MustCompile(`^(Error (running network|creating C session): )+`)

func explain(err error) error {
	text := preamble.ReplaceAllString(err.Error(), "")
	switch {
	case lostDevice.MatchString(text):
		return fmt.Errorf("%w: %s", stages.ErrDeviceLost, strings.TrimSuffix(plainly(err), "."))
	case outOfMemory.MatchString(text):
		return fmt.Errorf("%w: %s", stages.ErrOutOfMemory, text)
	}
	return fmt.Errorf("ONNX Runtime: %s", text)
}

// destroy releases what the library made. Where its wrapper can't hold a value, such as one without elements,
// it leaves a nil pointer.
func destroy(values []onnxruntime.Value) {
	for _, v := range values {
		if v != nil && !reflect.ValueOf(v).IsNil() {
			v.Destroy()
		}
	}
}
