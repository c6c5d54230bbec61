package perturb

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestOfficialGradientMasking compares masked images, outputs and the sign of the impact with those of the
// official code.
func TestOfficialGradientMasking(t *testing.T) {
	for file, net := range map[string]string{
		"smallcnn_bs4.npz": "smallcnn", "smallcnn_bs8.npz": "smallcnn",
		"timm_resnet_basic_bs4.npz": "timm_resnet_basic_bn", "timm_vit_bs4.npz": "timm_vit_op17",
	} {
		a := golden.Arrays(t, filepath.Join(golden.Dir(t), "gae", file))
		model := modeltest.Official(t, net, 0)
		x, n := a["positive_x"], 3*32*32
		var images, targets [][]byte
		for i, class := range a["positive_y"].Int64s() {
			images = append(images, stages.NewTensor(x.Float32s()[i*n:(i+1)*n], 3, 32, 32).Encode())
			targets = append(targets, stages.NewTensor([]int64{class}, 1).Encode())
		}
		r := stagetest.Run(t, GradientMasking, &GradientMaskingParams{States: 10, Variant: headSchedule},
			map[string][]stages.Data{"model": {model}, "images": {stagetest.Items(nil, images...)},
				"targets": {stagetest.Items(nil, targets...)}})
		for i := range images {
			outputs := decode(t, r.Payloads["outputs"][i])
			for s, order := range []string{"morf", "lerf"} {
				want := a[order+"_o"].Float64s()
				for k := range 10 {
					got, want := outputs[s*10+k], want[k*len(images)+i]
					if !(math.Abs(got-want) <= 1e-4*(1+math.Abs(want))) {
						t.Errorf("%s: image %d, %s: output %d is %v, want %v", file, i, order, k, got, want)
					}
				}
				if states, ok := a[order+"_x"]; ok {
					checkStates(t, file+" "+order, model, images[i], r.Payloads[order][i], states.Float32s())
				}
			}
			impact := decode(t, r.Payloads["impact"][i])
			wrong := 0
			for k, v := range a["impact_sign"].Float64s()[i*n : (i+1)*n] {
				if v*impact[k] < 0 {
					wrong++
				}
			}
			// A difference of two sums may be as small as their rounding errors.
			if wrong > n/500 {
				t.Errorf("%s: image %d: the impact has another sign at %d of %d elements", file, i, wrong, n)
			}
		}
	}
}

// checkStates compares the images of a sequence with all of its official ones but the last few that have
// hardly anything left.
func checkStates(t *testing.T, name string, model stages.Data, image, removals []byte, want []float32) {
	t.Helper()
	n := 3 * 32 * 32
	for step := 1; step < 10; step++ {
		r := stagetest.Run(t, Masked, &MaskedParams{Step: step}, map[string][]stages.Data{"model": {model},
			"images": {stagetest.Items(nil, image)}, "removals": {stagetest.Items(nil, removals)}})
		got, err := stages.DecodeTensor(r.Payloads["images"][0])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Float32s(), want[step*n:(step+1)*n]) {
			differ := 0
			for k, v := range got.Float32s() {
				if v != want[step*n+k] {
					differ++
				}
			}
			t.Errorf("%s: step %d differs at %d of %d elements", name, step, differ, n)
		}
	}
}
