package perturb

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestWarnsOfOtherLabels checks the warning for a label outside the model's classes, for which no answer is
// correct.
func TestWarnsOfOtherLabels(t *testing.T) {
	is := func(v int64) []byte { return stages.NewTensor([]int64{v}, 1).Encode() }
	in := officialInput(t, "smallcnn")
	in["labels"] = []stages.Data{stagetest.Items(nil, is(9), is(1000))}
	r := stagetest.Run(t, Deletion,
		&DeletionParams{Params{Substrate: "black", Kernel: 11, Sigma: 11, Steps: 2, Values: "magnitude"}}, in)
	if len(r.Warnings) != 1 ||
		!strings.HasPrefix(r.Warnings[0], `item "item-1": its label is 1000, but the model has 10 classes`) {
		t.Errorf("warnings %q", r.Warnings)
	}
}
