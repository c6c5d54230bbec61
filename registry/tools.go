package registry

import (
	"io"

	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// The types and functions that the command uses from families; they are documented there.
type (
	Runtime     = model.Runtime       // the ONNX Runtime that was found
	Adapter     = model.Adapter       // a GPU that it may use
	NoDevice    = model.NoDevice      // why a device can't be used, and a remedy
	Hypothesis  = model.Hypothesis    // of how a model is fed, and how its classes are numbered
	Nested      = dataset.Nested      // a data set whose folders contain the folders of classes
	NestedError = dataset.NestedError // the folders of a data set are its splits, not classes
	Numbering   = dataset.Numbering   // of a data set's classes
	Candidate   = model.Candidate     // an output that may have the classes
	NodeCount   = model.NodeCount     // how many nodes of an operator a model has
	Folder      = dataset.Content     // the contents of a folder of images
)

// The use of ONNX Runtime.
func UseRuntime(path string)                  { model.UseRuntime(path) }
func FindRuntime(path string) (string, error) { return model.FindRuntime(path) }
func FindPlugin(library string) string        { return model.FindPlugin(library) }
func Forms(class string) int                  { return model.Forms(class) }
func OpenRuntime() (Runtime, error)           { return model.OpenRuntime() }
func NoRuntime(err error) bool                { return model.NoRuntime(err) }

// Worker processes, in which models run that are unknown or have ended a process before, so that they can't
// end this one.
func UseWorkers(command ...string)            { model.UseWorkers(command...) }
func ServeWorker(in io.Reader, out io.Writer) { model.Serve(in, out) }
func Watch(dir string, build func() string)   { model.Watch(dir, build) }
func Unwatch()                                { model.Unwatch() }

// Unmuted returns a writer to stderr that waits while the messages of starting drivers are muted.
func Unmuted(stderr io.Writer) io.Writer { return model.Unmuted(stderr) }

// CatchFaults makes a fault in a library end this process with the signal's name, a sentence and an exit
// code.
func CatchFaults(sentence string, code int) { model.CatchFaults(sentence, code) }

// LookInto describes the images in a folder as dataset/folder would see them.
func LookInto(folder string) (Folder, error) { return dataset.Inspect(folder) }
