package perturb

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

func read(t *testing.T, path ...string) map[string]npy.Array {
	t.Helper()
	a := golden.Arrays(t, filepath.Join(append([]string{golden.Dir(t)}, path...)...))
	return a
}

func TestPoints(t *testing.T) {
	tests := []struct {
		name          string
		p             Params
		pixels, longs int
		want          []int
	}{
		{"the longer side", Params{Unit: "pixel"}, 12, 4, []int{0, 4, 8, 12}},
		{"a given step", Params{Step: 5}, 12, 4, []int{0, 5, 10, 12}},
		{"a step of more than all", Params{Step: 50}, 12, 4, []int{0, 12}},
		{"equal shares", Params{Steps: 3}, 12, 4, []int{0, 4, 8, 12}},
		{"rounded shares, halves to even", Params{Steps: 8}, 12, 4, []int{0, 2, 3, 4, 6, 8, 9, 10, 12}},
		{"a step counts before shares", Params{Step: 6, Steps: 3}, 12, 4, []int{0, 6, 12}},
	}
	for _, tt := range tests {
		if got := tt.p.points(tt.pixels, tt.longs); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestFacts(t *testing.T) {
	in := map[string]stages.Facts{"model": {"height": "4", "width": "6"}}
	tests := []struct {
		stage  stages.Stage
		params any
		want   stages.Facts
	}{
		{Insertion, Insertion.NewParams(),
			stages.Facts{"order": "insertion", "direction": "higher", "step_pixels": "6"}},
		{Deletion, &DeletionParams{Params{Step: 5, Unit: "pixel"}},
			stages.Facts{"order": "deletion", "direction": "lower", "step_pixels": "5"}},
		{Ablation, Ablation.NewParams(), stages.Facts{"order": "morf", "direction": "lower"}},
		{Ablation, &AblationParams{Params{Steps: 8, Unit: "pixel"}, "lerf"},
			stages.Facts{"order": "lerf", "direction": "higher", "step_pixels": "3"}},
		{Ablation, &AblationParams{Params{Unit: "pixel", Shares: []float64{0.1, 0.55}}, "random"},
			stages.Facts{"order": "random", "direction": "none", "shares": "0,0.1,0.55"}},
		{Ablation, &AblationParams{Params{Unit: "region", Region: 3, Steps: 2}, "morf"},
			stages.Facts{"order": "morf", "direction": "lower", "unit": "region"}},
		{Region, &AblationParams{Params{Unit: "region", Region: 3, Limit: 2}, "morf"},
			stages.Facts{"order": "morf", "direction": "lower", "unit": "region", "shares": "0,0.25,0.5"}},
		{Region, &AblationParams{Params{Unit: "region", Region: 3, Limit: 100}, "morf"},
			stages.Facts{"order": "morf", "direction": "lower", "unit": "region"}},
		{Ablation, &AblationParams{Params{Unit: "segment", Shares: []float64{0.5}}, "morf"},
			stages.Facts{"order": "morf", "direction": "lower", "unit": "segment", "shares": "0,0.5"}},
	}
	for _, tt := range tests {
		got, err := tt.stage.Facts(tt.params, in)
		if err != nil {
			t.Fatal(err)
		}
		tt.want["responses"] = "probability,logit,correct"
		if d := cmp.Diff(tt.want, got["curves"]); d != "" {
			t.Errorf("%s: %s", tt.stage.Name, d)
		}
	}
	if _, err := Insertion.Facts(Insertion.NewParams(), nil); err == nil {
		t.Error("a model without facts was accepted")
	}
}

// TestBlurOfUnevenSizes compares blur with its definition on an image that is smaller than the kernel and not
// square.
func TestBlurOfUnevenSizes(t *testing.T) {
	const h, w = 5, 13
	x := make([]float32, h*w)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	k := kernel(11, 2)
	got := make([]float32, h*w)
	blur(x, got, h, w, k)
	for y := range h {
		for column := range w {
			want := 0.0
			for dy := -5; dy <= 5; dy++ {
				for dx := -5; dx <= 5; dx++ {
					if yy, xx := y+dy, column+dx; yy >= 0 && yy < h && xx >= 0 && xx < w {
						want += k[dy+5] * k[dx+5] * float64(x[yy*w+xx])
					}
				}
			}
			if d := math.Abs(float64(got[y*w+column]) - want); !(d <= 1e-6) {
				t.Fatalf("pixel %d,%d: %v, want %v", y, column, got[y*w+column], want)
			}
		}
	}
}

// TestOfficialBaselines compares constant substrates with the official monotone curves. The image is
// normalised already, and a model without normalisation has mean 0, so the constants are set here.
//
// The curves of the random baseline can't be tested: the official code overwrites it, and rand_baseline in
// the file is the image itself.
func TestOfficialBaselines(t *testing.T) {
	a := read(t, "mas_rise", "baselines_smallcnn_img2.npz")
	if !slices.Equal(a["rand_baseline"].Float32s(), a["x"].Float32s()) {
		t.Error("rand_baseline is no longer the image: its curves can be tested")
	}
	order := descending(a["saliency"].Float64s())
	model := modeltest.Official(t, "smallcnn", 0)
	for name, value := range map[string]float32{"mean_R101": 0.449, "mean_VIT": 0.5} {
		for key, d := range map[string]direction{"ins": insertion, "del": deletion} {
			got := monotone(curveWith(t, model, a["x"], order, d, value), key == "ins")
			for k, want := range a[name+"_"+key+"_mr"].Float64s() {
				if !(math.Abs(got[k]-want) <= normalised32) {
					t.Errorf("%s %s: point %d is %v, want %v", name, key, k, got[k], want)
					break
				}
			}
		}
	}
}

// TestSubstrateValues compares constant substrates with their definitions.
func TestSubstrateValues(t *testing.T) {
	in := shapesInput(t, "imagenet")
	spec := modeltest.Spec(t, in["model"][0])
	for kind, want := range map[string][3]float32{
		"zero":  {0, 0, 0},
		"black": {spec.Black(0), spec.Black(1), spec.Black(2)},
		"mean":  {0.449, 0.449, 0.449},
	} {
		dst := fillOf(t, kind, in)
		for c := range 3 {
			if got := dst[c*1024+7]; !(math.Abs(float64(got-want[c])) <= 1e-3) {
				t.Errorf("%s: channel %d is %v, want %v", kind, c, got, want[c])
			}
		}
	}
	noise := fillOf(t, "random", in)
	low, high, sum := slices.Min(noise), slices.Max(noise), 0.0
	for _, v := range noise {
		sum += float64(v)
	}
	if low < 0 || high >= 1 || !(math.Abs(sum/float64(len(noise))-0.5) <= 0.02) {
		t.Errorf("noise lies in [%v, %v] around %v", low, high, sum/float64(len(noise)))
	}
	if !slices.Equal(noise, fillOf(t, "random", in)) {
		t.Error("noise differs from call to call")
	}
}

// TestOfficialAblation compares both orders with the reference curves, on images with labels.
func TestOfficialAblation(t *testing.T) {
	a := read(t, "perturbation_reference", "morf_lerf.npz")
	model := modeltest.Official(t, "smallcnn", 0)
	labels := a["labels"].Int64s()
	for _, order := range []string{"morf", "lerf"} {
		right := make([]float64, 11)
		for n := range labels {
			x := npy.Array{DType: "f4", Shape: []int{3, 32, 32}, Raw: a["x"].Raw[n*4*3*1024:][:4*3*1024]}
			map_ := a["map"].Float64s()[n*1024:][:1024]
			p := Ablation.NewParams().(*AblationParams)
			p.Order = order
			r := run(t, Ablation, p, model, x, descending(map_), int(labels[n]))
			curve := decode(t, r.Payloads["curves"][0])
			for k := range 11 {
				right[k] += curve[2*11+k] / float64(len(labels))
				if want := a[order+"_prob"].Float64s()[k*len(labels)+
					n]; !(math.Abs(curve[k]-want) <= official32(want, curve[11+k])) {
					t.Errorf("%s: image %d at %d %%: %v, want %v", order, n, 10*k, curve[k], want)
				}
			}
		}
		for k, want := range a[order+"_acc"].Float64s() {
			if !(math.Abs(right[k]-want) <= 1e-6) {
				t.Errorf("%s: %v right at %d %%, want %v", order, right[k], 10*k, want)
			}
		}
	}
}

// TestBatchAndThreads checks that curves don't depend on batch size and threads.
func TestBatchAndThreads(t *testing.T) {
	for _, net := range []string{"smallcnn", "timm_vit_op17", "timm_resnet_basic_bn"} {
		in := officialInput(t, net)
		p := Insertion.NewParams().(*InsertionParams)
		p.Step = 100
		modeltest.InvariantStage(t, Insertion, p, "curves", in)
		p2 := Ablation.NewParams().(*AblationParams)
		p2.Order = "lerf"
		modeltest.InvariantStage(t, Ablation, p2, "curves", in)
		p3 := Region.NewParams().(*AblationParams)
		p3.Order, p3.Limit = "random", 5
		modeltest.InvariantStage(t, Region, p3, "curves", in)
	}
}

// TestEnds checks that curves start and end at the image and the substrate, for every order.
func TestEnds(t *testing.T) {
	in := officialInput(t, "smallcnn")
	whole := func(s stages.Stage, params any) []float64 {
		return decode(t, stagetest.Run(t, s, params, in).Payloads["curves"][0])
	}
	ins, del := whole(Insertion, &InsertionParams{defaults("zero")}), whole(Deletion,
		&DeletionParams{defaults("zero")})
	last := len(ins)/3 - 1
	if ins[0] != del[last] || ins[last] != del[0] {
		t.Errorf("insertion runs from %v to %v, deletion from %v to %v", ins[0], ins[last], del[0], del[last])
	}
	up, down := Ablation.NewParams().(*AblationParams), Ablation.NewParams().(*AblationParams)
	up.Order = "lerf"
	a, b := whole(Ablation, up), whole(Ablation, down)
	if a[0] != b[0] || a[10] != b[10] || a[0] != del[0] || a[10] != ins[0] {
		t.Errorf("ablation runs from %v and %v to %v and %v", a[0], b[0], a[10], b[10])
	}
}

// TestNoOrder checks that the curve of a map without an order is undefined and as long as the others, and
// doesn't affect these.
func TestNoOrder(t *testing.T) {
	in := officialInput(t, "smallcnn")
	for _, s := range []stages.Stage{Insertion, Deletion, Ablation} {
		want := stagetest.Run(t, s, nil, in).Payloads["curves"]
		none := maps.Clone(in)
		second, err := in["maps"][0].Load(1)
		if err != nil {
			t.Fatal(err)
		}
		none["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor([]uint32(nil), 0, 0).Encode(),
			second)}
		got := stagetest.Run(t, s, nil, none).Payloads["curves"]
		curve := decode(t, got[0])
		if len(curve) != len(decode(t, want[0])) ||
			slices.ContainsFunc(curve, func(y float64) bool { return !math.IsNaN(y) }) {
			t.Errorf("%s: the curve of a map without an order is %v", s.Name, curve)
		}
		if !slices.Equal(got[1], want[1]) {
			t.Errorf("%s: the next image's curve is another", s.Name)
		}
	}
}

func TestRefuses(t *testing.T) {
	in := officialInput(t, "smallcnn")
	with := func(port string, b []byte) map[string][]stages.Data {
		out := map[string][]stages.Data{}
		for k, v := range in {
			out[k] = v
		}
		out[port] = []stages.Data{stagetest.Items(nil, b, b)}
		return out
	}
	tests := []struct {
		name string
		in   map[string][]stages.Data
		want string
	}{
		{"a small map", with("maps", stages.NewTensor(make([]uint32, 4), 2, 2).Encode()),
			"the model's 32×32"},
		{"a class too many", with("targets", stages.NewTensor([]int64{10}, 1).Encode()),
			"class 10 is not one of the model's 10"},
		{"a small image", with("images", stages.NewTensor(make([]uint8, 12), 3, 2, 2).Encode()),
			"the model's 32×32"},
		{"a damaged image", with("images", []byte("no tensor")), "item \"item-0\""},
	}
	for _, tt := range tests {
		_, err := stagetest.Try(Deletion, nil, tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	if err := (Params{Kernel: 4}).Validate(); err == nil {
		t.Error("an even kernel was accepted")
	}
}
