package registry

import (
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// Runtime tells what ONNX Runtime was found.
type Runtime = model.Runtime

// UseRuntime says where the library of ONNX Runtime is: a file, or a folder that
// has it.
func UseRuntime(path string) { model.UseRuntime(path) }

// FindRuntime returns the path of the library that OpenRuntime would open, where
// path is what UseRuntime was told.
func FindRuntime(path string) (string, error) { return model.FindRuntime(path) }

// OpenRuntime opens ONNX Runtime unless it's open. The error says where it was
// looked for.
func OpenRuntime() (Runtime, error) { return model.OpenRuntime() }

// NoRuntime reports whether err is about an ONNX Runtime that is missing or
// doesn't fit, rather than about anything it was asked to do.
func NoRuntime(err error) bool { return model.NoRuntime(err) }

// A Folder is what a folder of images holds.
type Folder = dataset.Look

// LookInto looks for images in a folder, as dataset/folder would.
func LookInto(folder string) (Folder, error) { return dataset.LookInto(folder) }
