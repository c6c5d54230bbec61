package registry

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/function"
	"github.com/runexp/runexp/stages/model"
)

// The types and functions that the command uses from families; they are documented there.
type (
	Hypothesis  = model.Hypothesis    // of how a model is fed, and how its classes are numbered
	Nested      = dataset.Nested      // a data set whose folders contain the folders of classes
	NestedError = dataset.NestedError // the folders of a data set are its splits, not classes
	Numbering   = dataset.Numbering   // of a data set's classes
	Candidate   = model.Candidate     // an output that may have the classes
	NodeCount   = model.NodeCount     // how many nodes of an operator a model has
	Folder      = dataset.Content     // the contents of a folder of images
)

// LookInto describes the images in a folder as dataset/folder would see them.
func LookInto(folder string) (Folder, error) { return dataset.Inspect(folder) }

// Interpreter is the command by which functions in Python run.
const Interpreter = function.Interpreter

// Function returns the stage that a function in a file of Python is; uses is its name in the experiment.
func Function(ctx context.Context, uses, file string) (*stages.Stage, error) {
	return function.Load(ctx, uses, file)
}
