package program_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestDeepLIFTReferences checks that multipliers are those for the last reference set, for one image as for
// two, whether the reference is computed once or in every run, and that images equal to it have its answer.
func TestDeepLIFTReferences(t *testing.T) {
	const joined = -2 // with the reference's nodes among the others
	all := modeltest.Nets(t, false)
	for _, name := range []string{"smallcnn", "timm_resnet_basic_bn", "timm_vit_op17"} {
		n := net(t, all[name])
		var want []float32
		for _, batch := range []int{1, 2, joined} {
			slot := threaded{1, stagetest.NewSlot()}
			var d program.DeepLIFT
			if batch == joined {
				batch = 2
				d = program.JoinedDeepLIFT(t.Context(), t, n, slot)
			} else {
				var err error
				if d, err = n.DeepLIFT(t.Context(), slot, lower.Question{}, false, batch); err != nil {
					t.Fatal(err)
				}
			}
			for i := range batch {
				wave(1, d.Image(i))
				d.Explain(i, program.Target{Class: 0, Minus: -1})
			}
			references := make([][]float32, 2)
			var got [2][]float32
			for k := range references {
				references[k] = make([]float32, n.Size())
				wave(k, references[k])
			}
			for _, k := range []int{0, 1, 0} {
				d.Reference(references[k])
				if err := d.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got[k] != nil && !sameBits(got[k], d.Multipliers(batch-1)) {
					t.Errorf("%s, batch %d: the same reference gives other multipliers later", name, batch)
				}
				got[k] = slices.Clone(d.Multipliers(batch - 1))
				if k == 1 && !sameBits(d.ReferenceAnswer(), d.Row(0)) {
					t.Errorf("%s, batch %d: an image equal to the reference has another answer", name, batch)
				}
			}
			if sameBits(got[0], got[1]) {
				t.Errorf("%s, batch %d: two references, the same multipliers", name, batch)
			}
			if want != nil && !sameBits(got[0], want) {
				t.Errorf("%s: the multipliers of one image depend on the rest of the batch", name)
			}
			want = got[0]
		}
	}
}
