package results

import (
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// words returns the position of the words of the texts on an edge, nil without any.
func (x *mapIndexer) words(e plan.Edge) (*int, error) {
	for {
		if k := slices.IndexFunc(e.From.Stage.Outputs, isType(stages.WordsType)); k >= 0 {
			at, err := x.port(e.From, k)
			return &at, err
		}
		in := slices.IndexFunc(e.From.Stage.Inputs, isType(stages.Tokens))
		if in < 0 || len(e.From.Inputs[in].Edges) == 0 {
			return nil, nil
		}
		e = e.From.Inputs[in].Edges[0]
	}
}
