package registry

import "github.com/runexp/runexp/stages/dataset"

// Builtin returns every stage of the program. A new stage is one line here, in
// sorted order; a test names the line that's missing.
func Builtin() *Set {
	return New(
		dataset.Shapes,
	)
}
