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
		r := stagetest.Run(t, GradientMasking, &GradientMaskingParams{Steps: 10, Variant: officialMasking},
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
			high, low := decode(t, r.Payloads["impact_morf"][i]), decode(t, r.Payloads["impact_lerf"][i])
			sums := [2]float64{}
			for k, v := range impact {
				sums[0] += high[k]
				sums[1] += low[k]
				if math.Abs(low[k]-high[k]-v) > 1e-7 {
					t.Errorf("%s: image %d: element %d has the impact %v, of %v and %v", file, i, k, v,
						low[k], high[k])
					break
				}
			}
			if math.Abs(sums[0]-1) > 1e-5 || math.Abs(sums[1]-1) > 1e-5 {
				t.Errorf("%s: image %d: impacts have the sums %v", file, i, sums)
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

// TestGradientMaskingOfLinearNet masks an image of ones by a net that weighs its elements from 1 to 72: the
// impact of an element is its weight, so that elements go in the order of their weights.
func TestGradientMaskingOfLinearNet(t *testing.T) {
	const n = 3 * linearN
	for variant, want := range map[string]string{paperMasking: "0,0.25,0.5,0.75", officialMasking: ""} {
		p := GradientMaskingParams{Steps: 3, Variant: variant}
		if got := p.outputFacts()["shares"]; got != want {
			t.Errorf("%s: the outputs have the shares %q", variant, got)
		}
	}
	m := linear(t, "unit", func(c, i int) float32 { return float32(1 + c*linearN + i) })
	in := linearInput(m, slices.Repeat([]float32{1}, n), make([]uint32, linearN))
	delete(in, "maps")
	for _, tt := range []struct {
		variant    string
		steps      int
		morf, lerf []int // elements masked after each step
	}{
		{paperMasking, 3, []int{18, 36, 54}, []int{18, 36, 54}},
		// The smallest are the masked ones, whose impact is zero; the largest are others.
		{officialMasking, 4, []int{18, 54, 72}, []int{18, 36, 54}},
		{january2024Masking, 3, []int{24, 60, 72}, []int{24, 36, 48}},
	} {
		p := &GradientMaskingParams{Steps: tt.steps, Variant: tt.variant}
		r := stagetest.Run(t, GradientMasking, p, in)
		points := len(tt.morf) + 1
		outputs := decode(t, r.Payloads["outputs"][0])
		if len(outputs) != 2*points {
			t.Fatalf("%s: %d outputs, want %d", tt.variant, len(outputs), 2*points)
		}
		for k := range points {
			morf, lerf := 0, 0 // MoRF masks the last elements, LeRF the first
			if k > 0 {
				morf, lerf = tt.morf[k-1], tt.lerf[k-1]
			}
			for s, left := range []float64{sumTo(n - morf), sumTo(n) - sumTo(lerf)} {
				if got := outputs[s*points+k]; got != left {
					t.Errorf("%s, sequence %d: output %d is %v, want %v", tt.variant, s, k, got, left)
				}
			}
		}
		removals, err := stages.DecodeTensor(r.Payloads["morf"][0])
		if err != nil {
			t.Fatal(err)
		}
		if removals.Raw[n-1] != 1 || tt.variant == paperMasking && removals.Raw[0] != 0 {
			t.Errorf("%s: MoRF masks the element of the largest weight at step %d, of the smallest at %d",
				tt.variant, removals.Raw[n-1], removals.Raw[0])
		}
		checkImpacts(t, tt.variant, n, r, tt.morf, tt.lerf)
	}
}

// checkImpacts checks the impacts of the net's elements, whose |x·∂f/∂x| are 1 to n: in each image, those
// that aren't masked add theirs, or their share of what the image has.
func checkImpacts(t *testing.T, variant string, n int, r stagetest.Result, morf, lerf []int) {
	t.Helper()
	high, low := make([]float64, n), make([]float64, n)
	add := func(to []float64, from, end int) {
		scale := 1.0
		if variant != paperMasking {
			scale = max(sumTo(end)-sumTo(from), 1e-9)
		}
		for k := from; k < end; k++ {
			to[k] += float64(k+1) / scale
		}
	}
	for k := range len(morf) + 1 {
		if k == 0 {
			add(high, 0, n)
			add(low, 0, n)
			continue
		}
		add(high, 0, n-morf[k-1])
		add(low, lerf[k-1], n)
	}
	for port, want := range map[string][]float64{"impact_morf": high, "impact_lerf": low} {
		scale := 1.0
		if variant != paperMasking {
			scale = total(want)
		}
		for k, got := range decode(t, r.Payloads[port][0]) {
			if !(math.Abs(got-want[k]/scale) <= 1e-6*(1+want[k]/scale)) {
				t.Errorf("%s: %s of element %d is %v, want %v", variant, port, k, got, want[k]/scale)
				return
			}
		}
	}
	for k, got := range decode(t, r.Payloads["impact"][0]) {
		if variant == paperMasking && !(math.Abs(got-(low[k]-high[k])) <= 1e-6*(1+low[k])) {
			t.Errorf("%s: element %d has the impact %v, of %v and %v", variant, k, got, low[k], high[k])
			return
		}
	}
}

// sumTo returns 1 + 2 + … + n.
func sumTo(n int) float64 { return float64(n * (n + 1) / 2) }
