package attribute

import (
	"fmt"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
)

const (
	gridSide = 64
	cellSide = 32
)

// gridNet returns what the stage of a setting makes of an official net.
func gridNet(t *testing.T, net, setting string) stages.Data {
	t.Helper()
	base := modeltest.Official(t, net, cellSide)
	switch setting {
	case "GridPG":
		return modeltest.Rewritten(t, model.GridPG, base)
	case "DiFull":
		return modeltest.Rewritten(t, model.DiFull, base)
	}
	return modeltest.Rewritten(t, model.DiPart, base)
}

// TestOfficialGrids holds RISE at the input against the code of Rao et al. in its three settings.
func TestOfficialGrids(t *testing.T) {
	masks := read(t, "gridpg_difull_dipart", "rise_masks40_64.npz")["masks"].Float32s()
	for _, net := range []string{"gapcnn", "smallcnn"} {
		for _, setting := range []string{"GridPG", "DiFull", "DiPart"} {
			a := read(t, "gridpg_difull_dipart", net+"_"+setting+".npz")
			grids, labels := a["grids"], a["labels"].Int64s()
			heads := []int{0, 3}
			if setting == "GridPG" {
				heads = []int{0, 1, 2, 3}
			}
			net := gridNet(t, net, setting)
			for k, head := range heads {
				for n := range grids.Shape[0] {
					x := grids
					x.Raw = grids.Raw[n*4*3*gridSide*gridSide:][:4*3*gridSide*gridSide]
					x.Shape = []int{3, gridSide, gridSide}
					class := labels[4*n+head]
					if setting != "GridPG" {
						class += int64(10 * head) // heads one after the other
					}
					what := fmt.Sprintf("%s, head %d of grid %d", setting, head, n)
					official := func(method string) []float32 {
						all := a[method]
						size := gridSide * gridSide
						return all.Float32s()[(n*all.Shape[1]+k)*size:][:size]
					}
					near(t, what+" RISE", riseWith(t, net, x, masks, 0.1, int(class)),
						official("attr_RISE_Input"), official32)
				}
			}
		}
	}
}
