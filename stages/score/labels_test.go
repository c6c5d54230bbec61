package score

import (
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestTop1OfOtherLabels checks that a label outside the model's classes is an error that names its image.
func TestTop1OfOtherLabels(t *testing.T) {
	is := func(v int64) []byte { return stages.NewTensor([]int64{v}, 1).Encode() }
	in := func(labels ...int64) map[string][]stages.Data {
		var right, said [][]byte
		for _, l := range labels {
			right, said = append(right, is(l)), append(said, is(0))
		}
		return map[string][]stages.Data{
			"model":   {stagetest.Value(stages.Facts{"classes": "3"}, nil)},
			"labels":  {stagetest.Items(nil, right...)},
			"targets": {stagetest.Items(nil, said...)},
		}
	}
	check(t, stagetest.Run(t, Top1, nil, in(0, 2)), "scores", 0, 1, 0)
	fails(t, Top1, nil, in(0, 3), `item "item-1": the label is 3, but the model has 3 classes, 0 to 2: `)
	fails(t, Top1, nil, in(-1), `item "item-0": the label is -1`)
}
