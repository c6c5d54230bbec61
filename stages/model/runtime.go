package model

import (
	"errors"
	"io"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
	"github.com/runexp/runexp/stages/internal/ort"
)

// A Runtime describes the ONNX Runtime library in use and how it was found.
type Runtime struct {
	Version, Path, How string

	runtime *ort.Runtime
}

// UseRuntime sets the path of the ONNX Runtime library: a file, or a folder that contains it. It has no
// effect once the library is open.
func UseRuntime(path string) { ort.Use(path) }

// FindRuntime returns the path of the library, given that of [UseRuntime], without opening it.
func FindRuntime(path string) (string, error) {
	lib, err := ort.Find(path)
	return lib.Path, err
}

// FindPlugin returns the path of the plugin with which a library computes on webgpu; "" if there is none, or
// the library needs none. It opens neither, but reads the library.
func FindPlugin(library string) string { return ort.Plugin(library) }

// Forms returns the number of what programs have for a class of devices and not for a processor; 0 is that of
// the processor.
func Forms(class string) int { return ort.ProviderOf(class).Forms }

// OpenRuntime opens the library if it isn't open yet.
func OpenRuntime() (Runtime, error) {
	r, err := ort.Default()
	if err != nil {
		return Runtime{}, err
	}
	return Runtime{Version: r.Version, Path: r.Library.Path, How: r.Library.How, runtime: r}, nil
}

// An Adapter is a GPU as its driver describes it.
type Adapter = gpu.Adapter

// A NoDevice is the error of a device that can't be had, which the user has to fix.
type NoDevice = ort.NoDevice

// Devices returns the adapters of a class, by the indices of its devices. If the class has a single device,
// others are those that it takes where it can't use the first. It has the first device compute something. The
// error is a [NoDevice] if it is the machine's.
func (r Runtime) Devices(class string) (usable, others []Adapter, err error) {
	return r.runtime.Devices(class)
}

// Adapters returns those that devices of one class are, none of processors, or an error as [Runtime.Devices]
// does.
func (r Runtime) Adapters(devices ...stages.Device) ([]Adapter, error) {
	return r.runtime.Adapters(devices...)
}

// NoRuntime reports whether err is caused by a missing or incompatible library, which the user has to fix.
func NoRuntime(err error) bool {
	if err == nil { // the common case
		return false
	}
	var missing *ort.ErrNoRuntime
	return errors.As(err, &missing)
}

// UseWorkers sets the command that starts a worker, a process that calls [Serve]. Model files are first
// loaded and run in a worker, because they may crash the process.
func UseWorkers(command ...string) { ort.UseWorkers(command...) }

// Serve runs this process as a worker of [UseWorkers].
func Serve(in io.Reader, out io.Writer) { ort.Serve(in, out) }

// Watch records the models in use in a folder, until [Unwatch]. If the process ends before Unwatch, the next
// one runs the programs of these models in workers. build identifies everything but the model that determines
// a program's behaviour.
func Watch(dir string, build func() string) { ort.Watch(dir, build) }

// Unwatch ends [Watch] after a run without a crash.
func Unwatch() { ort.Unwatch() }

// Unmuted returns a writer to stderr that waits while the drivers of devices start, which is done quietly.
func Unmuted(stderr io.Writer) io.Writer { return ort.Unmuted(stderr) }

// CatchFaults makes a fault in a library end the process with the signal's name, a sentence and an exit code.
func CatchFaults(sentence string, code int) { ort.CatchFaults(sentence, code) }
