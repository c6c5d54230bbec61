package ort

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runexp/runexp/stages"
)

// A worker is a process that uses the library for this one. If a model makes ONNX Runtime crash or loop
// there, this process goes on. Several calls may be in progress at once.
type worker struct {
	cmd    *exec.Cmd
	stderr *beginning

	mu       sync.Mutex // guards the fields below, and writing
	in       io.WriteCloser
	limits   Limits
	last     uint64
	pending  map[uint64]chan *message
	resident int64 // bytes of memory, as of the last reply
	fault    error // why the process ended
	closed   bool
}

// Limits bound what a worker takes; 0 is no limit.
type Limits struct {
	Time   time.Duration // processor time
	Memory int64         // bytes of resident memory
	Of     string        // the source of Memory, as in "the machine has left"
}

// These environment variables limit what one batch of an unknown model may take: the processor time, and
// the memory in GB.
const (
	timeVariable   = "RUNEXP_MODEL_TIME"
	memoryVariable = "RUNEXP_MODEL_MEMORY"
)

// usualTime is far more than any classifier needs. It is processor time, so it doesn't pass while other
// processes run.
const usualTime = 5 * time.Minute

// cautious returns the limits for an unknown model.
func cautious() (Limits, error) {
	l, err := memoryLimit(0)
	if err != nil {
		return l, err
	}
	l.Time = usualTime
	if text := os.Getenv(timeVariable); text != "" {
		t, err := time.ParseDuration(text)
		if err != nil || t <= 0 {
			return l, fmt.Errorf("$%s is %q: give a positive duration, such as 10m", timeVariable, text)
		}
		l.Time = t
	}
	return l, nil
}

// mostMemory returns how many bytes a batch may take, 0 if the environment doesn't say.
func mostMemory() (int64, error) {
	text := os.Getenv(memoryVariable)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) {
		return 0, fmt.Errorf("$%s is %q: give a positive number of GB, such as 16", memoryVariable, text)
	}
	return int64(min(n*1e9, 1<<62)), nil
}

// Isolated returns a runtime for a model that may crash or hang the process: it uses a worker with the
// usual limits, which does nothing else until Close. If [UseWorkers] hasn't set a command, it uses this
// process.
func Isolated() (*Runtime, error) {
	r, err := Default()
	if err != nil {
		return nil, err
	}
	l, err := cautious()
	if err != nil {
		return nil, err
	}
	process.mu.Lock()
	if process.workers == nil {
		process.mu.Unlock()
		return r, nil
	}
	process.mu.Unlock()
	isolating <- struct{}{}
	r, err = r.isolated(l)
	if err != nil {
		<-isolating
	}
	return r, err
}

// isolating bounds the number of workers of [Isolated]; a caller that has one must not ask for another.
var isolating = make(chan struct{}, 4)

func (r *Runtime) isolated(l Limits) (*Runtime, error) {
	process.mu.Lock()
	var w *worker
	if n := len(process.idle); n > 0 {
		w, process.idle = process.idle[n-1], process.idle[:n-1]
	}
	process.mu.Unlock()
	if w != nil && w.open(r, l) == nil {
		own := *r
		own.worker, own.reusable = w, true
		return &own, nil
	}
	own, err := r.inProcess(l, nil)
	if err == nil {
		own.reusable = true
	}
	return own, err
}

// inProcess returns a runtime that uses a new worker with these limits, which Close ends; a copy of r if
// [UseWorkers] hasn't set a command. Unless ended is nil, it is called if the process ends before Close.
func (r *Runtime) inProcess(l Limits, ended func()) (*Runtime, error) {
	process.mu.Lock()
	command := process.workers
	process.mu.Unlock()
	own := *r
	if command == nil {
		return &own, nil
	}
	w, err := startWorker(command, ended)
	if err != nil {
		return nil, err
	}
	if err := w.open(r, l); err != nil {
		w.close()
		return nil, err
	}
	own.worker = w
	return &own, nil
}

// open has the process open the library and reset its counters.
func (w *worker) open(r *Runtime, l Limits) error {
	w.mu.Lock()
	w.limits = l
	w.mu.Unlock()
	_, err := w.call(context.Background(), &message{Do: doOpen, Library: r.Library.Path, Limits: &l})
	return err
}

// small is how much memory an idle process may keep.
const small = 256 << 20

// Close ends the process of a runtime that has its own, or keeps it for the next call of [Isolated].
func (r *Runtime) Close() error {
	w := r.worker
	if w == nil {
		return nil
	}
	if r.reusable {
		defer func() { <-isolating }()
	}
	w.mu.Lock()
	keep := r.reusable && w.fault == nil && !w.closed && w.resident < small
	w.mu.Unlock()
	if !keep {
		w.close()
		return nil
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	process.idle = append(process.idle, w)
	return nil
}

// endIdle ends the idle processes.
func endIdle() {
	process.mu.Lock()
	idle := process.idle
	process.idle = nil
	process.mu.Unlock()
	for _, w := range idle {
		w.close()
	}
}

// UseWorkers sets the command that starts a worker: a program and its arguments, which calls [Serve].
// Without a command this process does everything.
func UseWorkers(command ...string) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.workers = command
}

// The kinds of requests.
const (
	doOpen     = "open"
	doLoad     = "load"
	doRun      = "run"
	doUnload   = "unload"
	doSimplify = "simplify"
	doOutputs  = "outputs"
	doAsk      = "ask" // to list a class's adapters
	doTry      = "try" // to compute on a class
)

func startWorker(command []string, ended func()) (*worker, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{
		// The first argument selects the behaviour of a program with several names.
		cmd:    &exec.Cmd{Path: exe, Args: command},
		stderr: &beginning{}, pending: map[uint64]chan *message{},
	}
	w.cmd.Stderr = w.stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("a process for a model: %w", err)
	}
	go w.receive(out, ended)
	return w, nil
}

// receive passes replies to their callers until the process ends.
func (w *worker) receive(out io.Reader, onEnd func()) {
	var err error
	for r := bufio.NewReaderSize(out, 1<<16); err == nil; {
		var m *message
		if m, err = readMessage(r); err == nil {
			w.mu.Lock()
			reply := w.pending[m.ID]
			delete(w.pending, m.ID)
			if m.Resident > 0 {
				w.resident = m.Resident
			}
			w.mu.Unlock()
			if reply != nil {
				reply <- m
			}
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		_ = w.cmd.Process.Kill() // it writes something other than messages
	}
	ended := w.cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = w.reason(ended)
	for _, reply := range w.pending {
		close(reply)
	}
	w.pending = nil
	if !w.closed && onEnd != nil {
		onEnd()
	}
}

// call sends a request and returns the reply. Its error is the reply's, a [Fault] if the process ended, or
// the cause of ctx, whose end ends the process.
func (w *worker) call(ctx context.Context, m *message) (*message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	reply := make(chan *message, 1)
	if err := w.send(m, reply); err != nil {
		return nil, err
	}
	select {
	case got, ok := <-reply:
		if !ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			return nil, w.fault
		}
		return got, got.failure()
	case <-ctx.Done():
		w.close()
		return nil, context.Cause(ctx)
	}
}

func (w *worker) send(m *message, reply chan *message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return w.fault
	}
	w.last++
	m.ID = w.last
	w.pending[m.ID] = reply
	// If the process has ended, receive returns that error to all callers.
	_ = m.write(w.in)
	return nil
}

// close ends the process.
func (w *worker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		_ = w.cmd.Process.Kill() // an error if it has ended
		_ = w.in.Close()
	}
}

// A Fault is the error of a worker process that ended while it used the library. On any device the model is
// at fault and the device isn't lost: its context ended with the process, and another process has its own.
// A model that crashes the library on one device would crash it on the next one.
type Fault struct {
	reason string
	memory bool
	how    string // how it ended: "SIGSEGV, an access to memory that isn't its own"
}

func (f *Fault) Error() string { return f.reason }

// Is reports whether the process ended for lack of memory.
func (f *Fault) Is(err error) bool { return f.memory && err == stages.ErrOutOfMemory }

var (
	fatalSignal = regexp.MustCompile(`(?m)^\[?(?:signal )?(SIG[A-Z]+)\b`)
	noMemory    = regexp.MustCompile(`(?i)out of memory|cannot allocate memory|bad_alloc|pthread_create ` +
		`failed`)
)

// faults explains the signals of native faults.
var faults = map[string]string{
	"SIGFPE":  "an integer division by zero, or one whose result is out of range",
	"SIGSEGV": "an access to memory that isn't its own",
	"SIGBUS":  "an access to memory that isn't there",
	"SIGILL":  "an instruction that the processor doesn't have",
	"SIGABRT": "an abort of its own",
	"SIGTRAP": "an abort of its own",
}

// reason returns why the process ended.
func (w *worker) reason(ended error) error {
	said := w.stderr.String()
	var exit *exec.ExitError
	code := 0
	if errors.As(ended, &exit) {
		code = exit.ExitCode()
	}
	name := signalOf(w.cmd.ProcessState)
	if m := fatalSignal.FindStringSubmatch(said); name == "" && m != nil {
		name = m[1]
	}
	switch {
	case code == exitTime:
		return &Fault{reason: fmt.Sprintf("the model takes more than %v of processor time for one batch: "+
			"if it would end, a longer time in $%s lets it", w.limits.Time, timeVariable)}
	case code == exitMemory:
		return &Fault{reason: fmt.Sprintf("the model takes more than %.3g GB of memory for one batch, and "+
			"that is all that %s", gb(w.limits.Memory), w.limits.Of), memory: true}
	case noMemory.MatchString(said):
		return &Fault{reason: "the model takes more memory for one batch than is available", memory: true,
			how: "memory ran out"}
	case name == "SIGKILL" && !w.closed:
		return &Fault{reason: "the process that ran the model was killed, by the system if memory was short",
			memory: true, how: name}
	case faults[name] != "":
		how := name + ", " + faults[name]
		return &Fault{reason: "the model crashes ONNX Runtime: " + how, how: how}
	case name != "":
		return &Fault{reason: "the process that ran the model was ended by " + name, how: name}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	how := strings.TrimSuffix(fmt.Sprintf("exit code %d: %s", code, first), ": ")
	return &Fault{reason: "the process that ran the model ended with " + how, how: how}
}

// A beginning keeps the first bytes that are written to it.
type beginning struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

const beginningSize = 1 << 14

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Write(p[:min(len(p), beginningSize-b.b.Len())])
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// load loads a model, as [openSession] does in this process.
func (w *worker) load(m *message, model []byte) (*Session, error) {
	if len(m.Inputs) == 0 || len(m.Outputs) == 0 {
		return nil, errNoEnds
	}
	m.Do, m.blobs = doLoad, [][]byte{model}
	reply, err := w.call(context.Background(), m)
	if err != nil {
		return nil, err
	}
	return &Session{worker: w, number: reply.Session, inputs: m.Inputs, outputs: m.Outputs}, nil
}

// run feeds in and returns the reply. Its blobs are the outputs, of the shapes in out, or, if out is nil,
// of the shapes that the library determines.
func (w *worker) run(ctx context.Context, session int, in []Value, out []array) (*message, error) {
	m := &message{Do: doRun, Session: session, Arrays: slices.Clone(out)}
	w.mu.Lock()
	if w.limits.Time == 0 { // this worker may take what is free now
		l, err := memoryLimit(w.resident)
		if err != nil {
			w.mu.Unlock()
			return nil, err
		}
		w.limits, m.Limits = l, &l
	}
	w.mu.Unlock()
	for _, v := range in {
		a, b := v.array()
		m.Arrays, m.blobs = append(m.Arrays, a), append(m.blobs, b)
	}
	return w.call(ctx, m)
}
