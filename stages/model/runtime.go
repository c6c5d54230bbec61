package model

import (
	"errors"

	"github.com/runexp/runexp/stages/internal/ort"
)

// A Runtime tells what ONNX Runtime was found, and what led to it.
type Runtime struct {
	Version, Path, How string

	runtime *ort.Runtime
}

// UseRuntime says where the library of ONNX Runtime is: a file, or a folder that
// has it. It has no effect once the library is open.
func UseRuntime(path string) { ort.Use(path) }

// FindRuntime returns the library's path, where path is what [UseRuntime] was
// told. It doesn't open the library.
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

// NoRuntime reports whether err is about a library that's missing or doesn't
// fit, which is for the user to mend.
func NoRuntime(err error) bool {
	if err == nil { // as for most of what a run tells
		return false
	}
	var missing *ort.ErrNoRuntime
	return errors.As(err, &missing)
}
