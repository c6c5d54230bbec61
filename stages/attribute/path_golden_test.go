package attribute

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestOfficialLeftIG holds Left-IG against the code of MAS.
func TestOfficialLeftIG(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "ig_family", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for _, steps := range []int{20, 50} {
			for key, alpha := range map[string]float64{"1": 1, "0.9": 0.9, "0.5": 0.5} {
				key := fmt.Sprintf("ig_mas_steps%d_alpha%s", steps, key)
				p := &LeftIGParams{plain(unreduced()), steps, alpha, "zero"}
				got := oneMap(t, LeftIG, p, model, a["x"].Float32s(), []int{3, 32, 32},
					a["target"].Int64s()[0])
				near(t, file+" "+key, got, a[key].Float32s(), gradient32)
			}
		}
	}
	for _, file := range []string{"smallcnn_img4", "smallcnn_img5", "gapcnn_img4", "gapcnn_img5"} {
		a := read(t, "ig_family", "lig_"+file+".npz")
		net, x, target := file[:len(file)-len("_img4")], a["x"].Float32s(), a["target"].Int64s()[0]
		p := &LeftIGParams{plain(unreduced()), 50, 0.9, "zero"}
		near(t, file, oneMap(t, LeftIG, p, modeltest.Official(t, net, 0), x, []int{3, 32, 32}, target),
			a["lig50_0p9"].Float32s(), gradient32)
		responses := a["path_logits"].Float64s()
		if got, want := p.cut(responses), a["cutoff_step"].Int64s()[0]; int64(got) != want {
			t.Errorf("%s: %d steps count, want %d", file, got, want)
		}
		// With this preset a black pixel is −1.
		for i, v := range x {
			x[i] = (v + 1) / 2
		}
		p.Baseline = "black"
		half := modeltest.Model(t, model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models", net+".onnx"),
			Preset: "half"})
		near(t, file+" from −1", oneMap(t, LeftIG, p, half, x, []int{3, 32, 32}, target),
			a["lig50_0p9_base_m1"].Float32s(), gradient32)
	}
}

// TestLeftIGCuts holds which steps count.
func TestLeftIGCuts(t *testing.T) {
	for _, tt := range []struct {
		alpha     float64
		responses []float64
		want      int
	}{
		{0.5, []float64{0, 1, 2, 3, 4}, 3},
		{0.75, []float64{0, 1, 2, 3, 4}, 4}, // 3 doesn't exceed 3
		{0.5, []float64{3, 1, 2, 3, 4}, 1},
		{0.5, []float64{-3, -2, -1}, 1},
		{1, []float64{0, 2, 1}, 3},
	} {
		if got := (LeftIGParams{Alpha: tt.alpha}).cut(tt.responses); got != tt.want {
			t.Errorf("alpha %v of %v: %d steps count, want %d", tt.alpha, tt.responses, got, tt.want)
		}
	}
}

// TestOfficialAGI holds adversarial gradient integration against the authors' code, with class 0 and with all
// classes as false ones.
func TestOfficialAGI(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "ig_family", file+".npz")
		net := modeltest.Model(t, model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models",
			file[:len(file)-len("_img0")]+".onnx"), Preset: "imagenet"})
		pixels, last := make([]uint8, 3*1024), a["agi_image_255"].Float32s()
		for i, v := range last {
			pixels[i%3*1024+i/3] = uint8(v)
		}
		in := officialImage(net, make([]float32, 3*1024), a["target"].Int64s()[0])
		in["images"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(pixels, 3, 32, 32).Encode())}
		for key, classes := range map[string]int{"agi_class0": 1, "agi_all": 10} {
			p := &AGIParams{Common: probable().Common, Variant: "official", Classes: classes, Steps: 20,
				Step: 0.05}
			p.Reduce = "none"
			got := tensor(t, stagetest.Run(t, AGI, p, in).Payloads["maps"][0])
			near(t, file+" "+key, got, a[key].Float32s(), 1e-4)
		}
	}
}

// TestAGIAddsUp checks that steps that go on lose, in sum, what the answer loses from the image to where they
// end.
func TestAGIAddsUp(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "imagenet")
	var inside [][]byte // pixel values from 0 to 1: a first step doesn't jump there
	for i := range in["images"][0].Items.Len() {
		x := tensor(t, payload(t, in["images"][0], i))
		for k, v := range x {
			x[k] = float32(0.5 + 0.2*math.Tanh(float64(v)))
		}
		inside = append(inside, stages.NewTensor(x, 3, 32, 32).Encode())
	}
	in["images"] = []stages.Data{stagetest.Items(nil, inside...)}
	p := &AGIParams{Common: common(), Variant: "paper", Classes: 1, Steps: 10, Step: 0.00002}
	p.Target = "7"
	got := mapsOf(t, AGI, p, in)
	e, err := stagetest.Env(&AGI, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		before, after := agiEnd(t, p, e, i)
		if fall := before - after; !(math.Abs(sum(got[i])-fall) <= 0.05*math.Abs(fall)) || fall == 0 {
			t.Errorf("item %d: the map sums to %v, the answer falls by %v", i, sum(got[i]), fall)
		}
	}
}

// agiEnd follows the way to class 0 and returns the explained logit at both ends.
func agiEnd(t *testing.T, p *AGIParams, e *stages.Env, i int) (before, after float64) {
	t.Helper()
	ctx := context.Background()
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	g, err := n.Gradient(ctx, e.Slot, lower.Question{Rules: relevance.Derivative()}, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, n.Size())
	if err := image(e, i, n, x); err != nil {
		t.Fatal(err)
	}
	target := program.Target{Class: 7, Minus: -1}
	w := p.trajectories(n, x, target)[0]
	if err := p.follow(ctx, n, g, []*trajectory{w}, target); err != nil {
		t.Fatal(err)
	}
	copy(g.Image(0), x)
	copy(g.Image(1), w.x)
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return n.Logit(g.Row(0), target), n.Logit(g.Row(1), target)
}

// TestOfficialVarGrad holds the variance against the moments of captum's noisy gradients, with captum's
// noise.
func TestOfficialVarGrad(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		e, err := stagetest.Env(&VarGrad, officialImage(modeltest.Official(t, file[:len(file)-len("_img0")],
			0), a["x"].Float32s(), a["target"].Int64s()[0]))
		if err != nil {
			t.Fatal(err)
		}
		p := VarGradParams{plain(unreduced()), Copies{Samples: 10}}
		if err := loaded(t.Context(), e, func(ctx context.Context, e *stages.Env, n *program.Net) error {
			return p.runNoise(ctx, e, n, captumNoise(a))
		}); err != nil {
			t.Fatal(err)
		}
		mean, want := a["t_smoothgrad"].Float32s(), a["t_smoothgrad_sq"].Float32s()
		for k, m := range mean {
			want[k] -= m * m
		}
		near(t, file, tensor(t, e.Outputs[0].Data), want, gradient32)
	}
}

func TestMoments(t *testing.T) {
	var m moments
	for _, v := range []float32{1e6 + 1, 1e6 + 2, 1e6 + 6} {
		m.add([]float32{v, 5})
	}
	if v := m.variance(); !(math.Abs(v[0]-14.0/3) <= 1e-9) || v[1] != 0 {
		t.Errorf("variances %v", v)
	}
}
