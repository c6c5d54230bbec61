package registry

import (
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/fuse"
	"github.com/runexp/runexp/stages/score"
)

// Builtin returns every stage of the program. A new stage is one line here, in
// sorted order; a test names the line that's missing.
func Builtin() *Set {
	return New(
		dataset.Shapes,
		fuse.MetaRank,
		score.AUC,
		score.MAS,
		score.MassAccuracy,
		score.RISE,
		score.Top1,
	)
}
