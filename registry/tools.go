package registry

import (
	"io"

	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// What the command borrows from families: types and functions are theirs, and documented there.
type (
	Runtime     = model.Runtime       // the ONNX Runtime that was found
	Adapter     = model.Adapter       // a GPU that it may use
	NoDevice    = model.NoDevice      // why a device can't be had, and what would help
	Hypothesis  = model.Hypothesis    // of how a model is fed, and how its classes are numbered
	Nested      = dataset.Nested      // a data set whose folders hold those of classes
	NestedError = dataset.NestedError // the folders of a data set are its parts, and no classes
	Numbering   = dataset.Numbering   // of a data set's classes
	Candidate   = model.Candidate     // an output that may have the classes
	NodeCount   = model.NodeCount     // how many nodes of an operator a model has
	Folder      = dataset.Content     // what a folder of images holds
)

// ONNX Runtime: where it is, and whether there is one.
func UseRuntime(path string)                  { model.UseRuntime(path) }
func FindRuntime(path string) (string, error) { return model.FindRuntime(path) }
func FindPlugin(library string) string        { return model.FindPlugin(library) }
func Forms(class string) int                  { return model.Forms(class) }
func OpenRuntime() (Runtime, error)           { return model.OpenRuntime() }
func NoRuntime(err error) bool                { return model.NoRuntime(err) }

// Processes in which a model does what it does for the first time, or what ended a process before, so that it
// can't end this one.
func UseWorkers(command ...string)            { model.UseWorkers(command...) }
func ServeWorker(in io.Reader, out io.Writer) { model.Serve(in, out) }
func Watch(dir string, build func() string)   { model.Watch(dir, build) }
func Unwatch()                                { model.Unwatch() }

// Unmuted returns a writer to stderr that waits while the drivers of devices start, which is done quietly.
func Unmuted(stderr io.Writer) io.Writer { return model.Unmuted(stderr) }

// CatchFaults has this process end with a sentence, behind the signal's name, and an exit code where a fault
// in a library ends it.
func CatchFaults(sentence string, code int) { model.CatchFaults(sentence, code) }

// LookInto looks for images in a folder, as dataset/folder would.
func LookInto(folder string) (Folder, error) { return dataset.Inspect(folder) }
