package function

import (
	"bufio"
	"context"
	_ "embed" // script
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/runexp/runexp/python"
	"github.com/runexp/runexp/stages"
)

// Interpreter is the command of Python, looked up in PATH.
const Interpreter = "python3"

// maxHead limits the bytes of a message without its arrays, startLimit the time until a file is imported.
const (
	maxHead    = 1 << 20
	startLimit = 2 * time.Minute
)

// script starts the module of this build, and none that is installed or stands in the working folder.
//
//go:embed start.py
var script string

// sources are the modules of this build by their names, as JSON.
var sources = sync.OnceValues(func() ([]byte, error) {
	modules := map[string]string{}
	err := fs.WalkDir(python.Module, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := python.Module.ReadFile(path)
		name := strings.ReplaceAll(strings.TrimSuffix(path, ".py"), "/", ".")
		modules[strings.TrimSuffix(name, ".__init__")] = string(b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(modules)
})

// A process calls one function.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	printed tail
	model   string // the id of the one that it has
	broken  bool   // it can't be called again
}

// start starts a process, which imports the file and describes the function.
func (f *function) start(ctx context.Context) (*process, description, error) {
	var d description
	path, err := exec.LookPath(Interpreter)
	if err != nil {
		return nil, d, fmt.Errorf("%s needs the command %s, which isn't in PATH", f.uses, Interpreter)
	}
	file, err := filepath.Abs(f.file)
	if err != nil {
		return nil, d, err
	}
	if g, err := stages.OpenFile(file); err != nil {
		return nil, d, err
	} else if err := g.Close(); err != nil {
		return nil, d, err
	}
	modules, err := sources()
	if err != nil {
		return nil, d, err
	}
	// By -B it writes no __pycache__ beside the file.
	p := &process{cmd: exec.Command(path, "-B", "-c", script, file, f.name)}
	p.cmd.Dir, p.cmd.Stderr = filepath.Dir(file), &p.printed
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second // for what it started and left to itself
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, d, err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, d, err
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	err = p.within(ctx, startLimit, func() error {
		if err := p.write(modules); err != nil {
			return err
		}
		return p.read(&d)
	})
	if ctx.Err() != nil {
		p.end()
		return nil, d, context.Cause(ctx)
	}
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	if err != nil {
		p.end()
		return nil, d, fmt.Errorf("%s: %w", f.uses, err)
	}
	return p, d, nil
}

// call sends a request, and returns its result.
func (p *process) call(ctx context.Context, r *request, limit time.Duration) (t stages.Tensor, err error) {
	err = p.within(ctx, limit, func() error {
		if err := p.send(r); err != nil {
			return err
		}
		var head struct {
			array
			Error string
		}
		if err := p.read(&head); err != nil {
			return err
		}
		if head.Error != "" {
			return &raised{head.Error}
		}
		dtype, err := r.kind.fits(head.array, r.of)
		if err != nil {
			return err
		}
		t = stages.Tensor{DType: dtype, Shape: head.Shape}
		t.Raw = make([]byte, t.Len()*dtype.Size())
		_, err = io.ReadFull(p.out, t.Raw)
		return err
	})
	return t, err
}

// A raised is an exception of the function, after which it can be called again.
type raised struct{ text string }

func (e *raised) Error() string { return e.text }

// within does what waits for the process. The process is killed at the limit, and if ctx is cancelled.
func (p *process) within(ctx context.Context, limit time.Duration, do func() error) error {
	timer := time.AfterFunc(limit, p.kill)
	stop := context.AfterFunc(ctx, p.kill)
	err := do()
	inTime, undisturbed := timer.Stop(), stop()
	p.broken = !inTime || !undisturbed // it may be killed in a moment, even if all was done by now
	if err == nil {
		return nil
	}
	var r *raised
	if errors.As(err, &r) {
		return p.told(err)
	}
	p.broken = true
	defer p.kill()
	switch {
	case !inTime:
		return p.told(fmt.Errorf("the function took more than %v, and was ended", limit))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE),
		errors.Is(err, fs.ErrClosed):
		return p.told(fmt.Errorf("the process of the function ended (%s)", p.state()))
	}
	return p.told(err)
}

// told adds the last lines that the process has printed to an error.
func (p *process) told(err error) error {
	if text := p.printed.String(); text != "" {
		return fmt.Errorf("%w; it printed: %s", err, text)
	}
	return err
}

// state waits for the end of a process that has closed its output, and says how it ended.
func (p *process) state() string {
	defer time.AfterFunc(time.Second, p.kill).Stop()
	err := p.cmd.Wait()
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// send sends a request, with the model if the process has another one.
func (p *process) send(r *request) error {
	var arrays [][]byte
	for _, t := range r.tensors {
		arrays = append(arrays, t.Raw)
	}
	if r.model != nil && p.model != r.model.id {
		r.Model, p.model = &r.model.head, r.model.id
		arrays = append(arrays, r.model.onnx)
	}
	head, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return p.write(head, arrays...)
}

// write writes a message: its head, after the head's length, and its arrays.
func (p *process) write(head []byte, arrays ...[]byte) error {
	w := bufio.NewWriterSize(p.in, 1<<16)
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(head)))
	w.Write(n[:])
	w.Write(head)
	for _, a := range arrays {
		w.Write(a)
	}
	return w.Flush()
}

// read reads the head of a message.
func (p *process) read(to any) error {
	var n [4]byte
	if _, err := io.ReadFull(p.out, n[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > maxHead {
		return fmt.Errorf("a message of %d bytes, more than %d", size, maxHead)
	}
	head := make([]byte, size)
	if _, err := io.ReadFull(p.out, head); err != nil {
		return err
	}
	return json.Unmarshal(head, to)
}

// kill ends the process and those that it has started.
func (p *process) kill() {
	if p.cmd.Process != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended already
	}
}

// end ends the process.
func (p *process) end() {
	p.kill()
	_ = p.in.Close()
	_ = p.cmd.Wait() // it was killed
}

// A pool keeps processes that wait for a call.
type pool struct {
	mu   sync.Mutex
	idle []*process
}

// take returns a process of the code that the stage was made from.
func (f *function) take(ctx context.Context) (*process, error) {
	f.pool.mu.Lock()
	if n := len(f.pool.idle); n > 0 {
		p := f.pool.idle[n-1]
		f.pool.idle = f.pool.idle[:n-1]
		f.pool.mu.Unlock()
		return p, nil
	}
	f.pool.mu.Unlock()
	p, d, err := f.start(ctx)
	if err == nil && d.Code != f.Code {
		p.end()
		return nil, fmt.Errorf("the code of %s was changed while the experiment ran: run it again", f.uses)
	}
	return p, err
}

// release lets the next call have a process, unless it can't be called again.
func (f *function) release(p *process) {
	if p.broken {
		p.end()
		return
	}
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.pool.idle = append(f.pool.idle, p)
}

// A tail keeps the last lines that are written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text); n > maxTail {
		t.text = append(t.text[:0], t.text[n-maxTail:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?"))
}
