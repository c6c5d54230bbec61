package ort

import (
	"context"
	"errors"
	"sync"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// A Binding is a session together with the tensors that its runs read and fill. On a device with its own
// memory an input is uploaded only if it was written since the last run; outputs are downloaded after every
// run.
type Binding struct {
	// Took is how long the last run occupied the device.
	Took time.Duration

	session *Session
	in, out []Value
	carrier Carrier  // nil on a processor and in a worker process, which use the tensors' own memory
	sent    []uint64 // versions of the inputs that are on the device
}

// A Carrier copies tensors to the memory of a session's device, and results back.
type Carrier interface {
	// Upload copies input i to the device; v may be overwritten afterwards.
	Upload(i int, v Value) error
	// Compute runs the session on the uploaded inputs and fills the outputs.
	Compute(ctx context.Context) error
	Close() error
}

// Carried reports whether the session's device has its own memory and this process copies tensors to it.
func (s *Session) Carried() bool { return s.carry != nil && s.worker == nil }

// Inputs returns the names of the session's inputs.
func (s *Session) Inputs() []string { return s.inputs }

// Bind binds a session to the tensors in and out; its runs read the first and fill the second. If the
// session is [Session.Carried], an output may be nil; it then stays on the device.
func (s *Session) Bind(in, out []Value) (*Binding, error) {
	if err := s.takes(len(in), len(out)); err != nil {
		return nil, err
	}
	b := &Binding{session: s, in: in, out: out}
	if !s.Carried() {
		return b, nil
	}
	defer s.turns.call()()
	var err error
	if b.carrier, err = s.carry(s, out); err != nil {
		return nil, explain(err)
	}
	b.sent = make([]uint64, len(in))
	s.bindings.Store(b, true)
	return b, nil
}

// Run uploads the inputs that have changed, computes, and fills the outputs. On a device it returns ctx's
// cause only after a run that has begun: the library can't cancel it, and runs are short.
func (b *Binding) Run(ctx context.Context) error {
	if b.carrier == nil {
		began := time.Now()
		defer func() { b.Took = time.Since(began) }()
		return b.session.Run(ctx, b.in, b.out)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer b.session.turns.call()()
	for i, v := range b.in {
		if b.sent[i] == v.written() {
			continue
		}
		if err := b.carrier.Upload(i, v); err != nil {
			return explain(err)
		}
		b.sent[i] = v.written()
	}
	defer b.session.turns.run()()
	began := time.Now()
	err := b.carrier.Compute(ctx)
	b.Took = time.Since(began)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return explain(err)
	}
	for _, v := range b.out {
		if v != nil {
			v.fill()
		}
	}
	return nil
}

// Close frees the device's copies of the tensors. Closing the session does so, too.
func (b *Binding) Close() error {
	if b.carrier == nil {
		return nil
	}
	defer b.session.turns.call()()
	return b.close()
}

func (b *Binding) close() error {
	if _, open := b.session.bindings.LoadAndDelete(b); !open {
		return nil
	}
	return b.carrier.Close()
}

// closeBindings closes all bindings of a session, whose memory belongs to its provider.
func (s *Session) closeBindings() error {
	var errs []error
	s.bindings.Range(func(b, _ any) bool {
		errs = append(errs, b.(*Binding).close())
		return true
	})
	return errors.Join(errs...)
}

// An ioBinding is ONNX Runtime's own carrier. It copies an input when this is bound, and outputs after a
// run.
type ioBinding struct {
	session *Session
	b       *onnxruntime.IoBinding
}

func bind(s *Session, out []Value) (Carrier, error) {
	b, err := s.session.CreateIoBinding()
	if err != nil {
		return nil, err
	}
	for i, v := range out {
		if v == nil {
			continue
		}
		if err := b.BindOutput(s.outputs[i], v.value()); err != nil {
			return nil, errors.Join(err, b.Destroy())
		}
	}
	return ioBinding{s, b}, nil
}

func (b ioBinding) Upload(i int, v Value) error { return b.b.BindInput(b.session.inputs[i], v.value()) }

func (b ioBinding) Compute(context.Context) error {
	return b.session.first(func() error { return b.session.session.RunWithBinding(b.b) })
}

func (b ioBinding) Close() error { return b.b.Destroy() }

// turns serialise the calls that sessions make to one device: one run has the device at a time, and thereby
// all of its memory. Meanwhile other slots decode, fill buffers and upload.
type turns struct {
	alone       bool // during a run, an upload or a loading nothing else is done
	calls, runs sync.Mutex
}

// call waits until the device accepts a call; the result ends the call.
func (t *turns) call() (end func()) {
	if t == nil || !t.alone {
		return func() {}
	}
	t.calls.Lock()
	return t.calls.Unlock
}

// run waits for the end of the previous run; the result ends this one.
func (t *turns) run() (end func()) {
	if t == nil {
		return func() {}
	}
	t.runs.Lock()
	return t.runs.Unlock
}

// turnsOf returns the turns of a device, nil for a processor.
func turnsOf(d stages.Device) *turns {
	p := ProviderOf(d.Class)
	if p.Carry == nil {
		return nil
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	t := process.turns[d.String()]
	if t == nil {
		t = &turns{alone: p.OneQueue}
		if process.turns == nil {
			process.turns = map[string]*turns{}
		}
		process.turns[d.String()] = t
	}
	return t
}
