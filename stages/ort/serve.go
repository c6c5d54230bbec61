package ort

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"
)

// The exit codes of a worker that exceeded its limits.
const (
	exitTime   = 121
	exitMemory = 122
)

// Serve makes this process a [worker]: it executes the requests of in and replies on out, until in ends
// because the process that started it closed it or ended.
func Serve(in io.Reader, out io.Writer) {
	ignoreSignals()
	talkative.Store(true)
	if f, ok := out.(*os.File); ok {
		out = ownStdout(f)
	}
	s := &server{sessions: map[int]*Session{}}
	var limits bound
	var once sync.Once
	var writing sync.Mutex
	for r := bufio.NewReaderSize(in, 1<<16); ; {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		if m.Limits != nil {
			once.Do(func() { go watch(&limits) })
			limits.set(*m.Limits)
		}
		go func() {
			reply, err := s.do(m)
			if err != nil {
				reply = &message{}
				reply.fail(err)
			}
			reply.ID, reply.Resident = m.ID, residentMemory()
			writing.Lock()
			defer writing.Unlock()
			if reply.write(out) != nil {
				os.Exit(0) // nobody reads replies any more
			}
		}()
	}
}

// A bound is the limits of this process, and the processor time that it had used when they were set.
type bound struct {
	mu     sync.Mutex // guards the fields below
	limits Limits
	before time.Duration
}

func (b *bound) set(l Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits, b.before = l, processorTime()
}

// watch ends this process when it exceeds its limits.
func watch(b *bound) {
	for ; ; time.Sleep(20 * time.Millisecond) {
		b.mu.Lock()
		l, took := b.limits, processorTime()-b.before
		b.mu.Unlock()
		if l.Time > 0 && took > l.Time {
			os.Exit(exitTime)
		}
		if l.Memory > 0 && residentMemory() > l.Memory {
			os.Exit(exitMemory)
		}
	}
}

// A server holds a worker's loaded models.
type server struct {
	mu       sync.Mutex // guards the fields below
	runtime  *Runtime
	sessions map[int]*Session
	last     int
}

func (s *server) do(m *message) (*message, error) {
	if m.Do == doOpen {
		Use(m.Library)
		r, err := Default()
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runtime = r
		return &message{}, nil
	}
	s.mu.Lock()
	r, session := s.runtime, s.sessions[m.Session]
	s.mu.Unlock()
	switch m.Do {
	case doLoad:
		return s.load(r, m)
	case doRun:
		return session.serve(m)
	case doUnload:
		s.mu.Lock()
		delete(s.sessions, m.Session)
		s.mu.Unlock()
		if m.Profiled {
			p, err := session.EndProfile()
			return &message{Profile: &p}, err
		}
		return &message{}, session.Close()
	case doSimplify:
		b, err := r.Simplify(m.blobs[0], m.Disabled...)
		return &message{blobs: [][]byte{b}}, err
	case doOutputs:
		infos, err := r.Outputs(m.blobs[0])
		return &message{Infos: infos}, err
	case doAsk:
		adapters, err := ProviderOf(m.Class).adapters()
		reply := &message{Adapters: adapters}
		if errors.As(err, &reply.Missing) {
			err = nil
		}
		return reply, err
	case doTry:
		return &message{}, r.try(context.Background(), *m.Device)
	}
	return nil, fmt.Errorf("a worker can't do %q", m.Do)
}

func (s *server) load(r *Runtime, m *message) (*message, error) {
	var session *Session
	var err error
	if m.Plain {
		session, err = r.NewPlainSession(m.blobs[0], m.Inputs, m.Outputs)
	} else {
		own := *r
		own.profiled, own.alone = m.Profiled, m.Alone
		session, err = own.newSession(m.blobs[0], m.Inputs, m.Outputs, *m.Device, m.Disabled)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.sessions[s.last] = session
	return &message{Session: s.last}, nil
}

// serve runs the session for another process. The arrays of the message are the outputs, if their shapes
// are known, and then the inputs.
func (s *Session) serve(m *message) (*message, error) {
	var in, out []Value
	defer func() {
		for _, v := range append(in, out...) {
			v.Close()
		}
	}()
	known := len(m.Arrays) - len(m.blobs)
	for i, a := range m.Arrays {
		v, err := a.tensor()
		if err != nil {
			return nil, err
		}
		if i < known {
			out = append(out, v)
			continue
		}
		in = append(in, v)
		_, b := v.array()
		copy(b, m.blobs[i-known])
	}
	reply := &message{}
	if known > 0 {
		if err := s.Run(context.Background(), in, out); err != nil {
			return nil, err
		}
		for _, v := range out {
			_, b := v.array()
			reply.blobs = append(reply.blobs, b)
		}
		return reply.whole(), nil
	}
	made := make([]onnxruntime.Value, len(s.outputs))
	defer destroy(made)
	if err := s.run(context.Background(), in, made); err != nil {
		return nil, err
	}
	for i, v := range made {
		switch t := v.(type) {
		case *onnxruntime.Tensor[float32]:
			reply.add(array{shapeOf(t.GetShape()), typeName[float32]()}, bytesOf(t.GetData()))
		case *onnxruntime.Tensor[int64]:
			reply.add(array{shapeOf(t.GetShape()), typeName[int64]()}, bytesOf(t.GetData()))
		default:
			return nil, fmt.Errorf("output %d consists neither of float32 nor of int64", i)
		}
	}
	return reply.whole(), nil
}

func (m *message) add(a array, b []byte) {
	m.Arrays, m.blobs = append(m.Arrays, a), append(m.blobs, b)
}

// whole returns m with copies of its blobs, since the memory of tensors is freed with them.
func (m *message) whole() *message {
	for i, b := range m.blobs {
		m.blobs[i] = append([]byte(nil), b...)
	}
	return m
}

// tensor returns a tensor of zeros.
func (a array) tensor() (Value, error) {
	switch a.Of {
	case typeName[float32]():
		return NewTensor[float32](nil, a.Shape...)
	case typeName[int64]():
		return NewTensor[int64](nil, a.Shape...)
	}
	return nil, errors.New("a worker is fed with float32 or int64, not with " + a.Of)
}
