package model

import (
	"errors"
	"io"

	"github.com/runexp/runexp/stages/internal/ort"
)

// A Runtime tells what ONNX Runtime was found, and what led to it.
type Runtime struct {
	Version, Path, How string

	runtime *ort.Runtime
}

// UseRuntime says where the library of ONNX Runtime is: a file, or a folder that has it. It has no effect
// once the library is open.
func UseRuntime(path string) { ort.Use(path) }

// FindRuntime returns the library's path, where path is what [UseRuntime] was told. It doesn't open the
// library.
func FindRuntime(path string) (string, error) {
	lib, err := ort.Find(path)
	return lib.Path, err
}

// OpenRuntime opens the library unless it's open.
func OpenRuntime() (Runtime, error) {
	r, err := ort.Default()
	if err != nil {
		return Runtime{}, err
	}
	return Runtime{Version: r.Version, Path: r.Library.Path, How: r.Library.How, runtime: r}, nil
}

// CUDA returns nil if r can compute on that CUDA device, else why not.
func (r Runtime) CUDA(index int) error { return r.runtime.HasCUDA(index) }

// NoRuntime reports whether err is about a library that's missing or doesn't fit, which is for the user to
// mend.
func NoRuntime(err error) bool {
	if err == nil { // as for most of what a run tells
		return false
	}
	var missing *ort.ErrNoRuntime
	return errors.As(err, &missing)
}

// UseWorkers says which command starts a process that calls [Serve]: what a model's file is to do for the
// first time it does there.
func UseWorkers(command ...string) { ort.UseWorkers(command...) }

// Serve makes this process one that [UseWorkers] is about.
func Serve(in io.Reader, out io.Writer) { ort.Serve(in, out) }

// Watch has this process note in a folder which models it uses, until [Unwatch]: where it ends before, the
// next one runs their programs in processes of their own. build names all that decides what a program does,
// but for its model.
func Watch(dir string, build func() string) { ort.Watch(dir, build) }

// Unwatch says that what [Watch] began went well.
func Unwatch() { ort.Unwatch() }

// CatchFaults has this process end with a sentence, behind the signal's name, and an exit code where a fault
// in a library ends it.
func CatchFaults(sentence string, code int) { ort.CatchFaults(sentence, code) }
