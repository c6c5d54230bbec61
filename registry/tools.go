package registry

import (
	"io"

	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// What the command borrows from families. Types are theirs; functions only forward.
type (
	Runtime   = model.Runtime   // the ONNX Runtime that was found
	Accuracy  = model.Accuracy  // of a model that is fed by a preset
	NodeCount = model.NodeCount // how many nodes of an operator a model has
	Folder    = dataset.Content // what a folder of images holds
)

// UseRuntime sets where the library of ONNX Runtime is: a file, or a folder that has it.
func UseRuntime(path string) { model.UseRuntime(path) }

// FindRuntime returns the path of the library that OpenRuntime would open, where path is UseRuntime's.
func FindRuntime(path string) (string, error) { return model.FindRuntime(path) }

// OpenRuntime opens ONNX Runtime unless it's open. The error names where it was looked for.
func OpenRuntime() (Runtime, error) { return model.OpenRuntime() }

// NoRuntime reports whether err is about an ONNX Runtime that is missing or doesn't fit.
func NoRuntime(err error) bool { return model.NoRuntime(err) }

// UseWorkers sets the command that starts a process which calls ServeWorker: there a model's file does what
// it does for the first time, so that it can't end this process.
func UseWorkers(command ...string) { model.UseWorkers(command...) }

// ServeWorker makes this process one that UseWorkers is about.
func ServeWorker(in io.Reader, out io.Writer) { model.Serve(in, out) }

// Watch has this process note in a folder which models it uses, until Unwatch: where it ends before, the next
// one runs their programs in processes of their own. build names all that decides what a program does, but
// for its model.
func Watch(dir string, build func() string) { model.Watch(dir, build) }

// Unwatch ends what Watch began.
func Unwatch() { model.Unwatch() }

// CatchFaults has this process end with a sentence, behind the signal's name, and an exit code where a fault
// in a library ends it.
func CatchFaults(sentence string, code int) { model.CatchFaults(sentence, code) }

// LookInto looks for images in a folder, as dataset/folder would.
func LookInto(folder string) (Folder, error) { return dataset.Inspect(folder) }
