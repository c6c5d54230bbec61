package attribute

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestOcclusionPlaces(t *testing.T) {
	tests := []struct {
		name                 string
		variant              string
		window, stride, size int
		want                 [][2]int
	}{
		{"they fit", "paper", 4, 2, 8, [][2]int{{0, 4}, {2, 6}, {4, 8}}},
		{"the last is cut", "paper", 4, 3, 8, [][2]int{{0, 4}, {3, 7}, {6, 8}}},
		{"larger than the image", "paper", 9, 3, 8, [][2]int{{0, 8}}},
		{"even, before the image too", "official", 4, 2, 8, [][2]int{{0, 2}, {0, 4}, {2, 6}, {4, 8}, {6, 8}}},
		{"odd, centred", "official", 5, 2, 8, [][2]int{{0, 3}, {0, 5}, {2, 7}, {4, 8}, {6, 8}}},
	}
	for _, tt := range tests {
		place := placePaper
		if tt.variant == "official" {
			place = placeOfficial
		}
		if d := cmp.Diff(tt.want, place(tt.size, tt.window, tt.stride)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// TestOcclusionCombines holds the maps of both variants against sums written out.
func TestOcclusionCombines(t *testing.T) {
	windows := []window{{0, 0, 1, 2}, {0, 1, 1, 3}}
	responses := []float64{7, 6}
	for variant, want := range map[string][]float64{
		"paper":    {3, 3.5, 4},
		"official": {1.5, 3.5, 2},
	} {
		got := OcclusionParams{Variant: variant}.meanFall(windows, 10, responses, 1, 3)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", variant, d)
		}
	}
}

func TestOcclusionRefusesGaps(t *testing.T) {
	for _, tt := range []struct {
		window, stride picture.Size
		want           string
	}{
		{picture.Square(4), picture.Square(5), "stride 5 is larger than window 4"},
		{picture.Size{H: 4, W: 9}, picture.Square(5), "stride 5 is larger than window 4x9"},
		{picture.Size{H: 9, W: 4}, picture.Size{H: 4, W: 5}, "stride 4x5 is larger than window 9x4"},
		{picture.Size{}, picture.Square(1), "window is empty"},
		{picture.Square(4), picture.Size{}, "stride is empty"},
	} {
		p := OcclusionParams{Tapped: tapped(), Window: tt.window, Stride: tt.stride}
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("window %v, stride %v: got %v, want %q", tt.window, tt.stride, err, tt.want)
		}
	}
}

// officialInput returns two images of an official net with targets and labels.
func officialInput(t *testing.T, net, io, preset string) map[string][]stages.Data {
	t.Helper()
	x := read(t, "models", io+".npz")["x"].Float32s()
	const n = 3 * 32 * 32
	var images, targets, labels [][]byte
	for k := range 2 {
		images = append(images, stages.NewTensor(x[k*n:(k+1)*n], 3, 32, 32).Encode())
		targets = append(targets, stages.NewTensor([]int64{int64(3 * k)}, 1).Encode())
		labels = append(labels, stages.NewTensor([]int64{7}, 1).Encode())
	}
	return map[string][]stages.Data{
		"model": {modeltest.Model(t, model.ONNXParams{
			Path: filepath.Join(golden.Dir(t), "models", net+".onnx"), Preset: preset,
		})},
		"images":  {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, targets...)},
		"labels":  {stagetest.Items(nil, labels...)},
	}
}

// TestBatchAndThreads checks that maps don't depend on how they're computed.
func TestBatchAndThreads(t *testing.T) {
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "unit")
		rise := *RISE.NewParams().(*RISEParams)
		rise.Masks = 21
		modeltest.InvariantStage(t, RISE, &rise, "maps", in)
		occlusion := *Occlusion.NewParams().(*OcclusionParams)
		occlusion.Window, occlusion.Stride = picture.Square(16), picture.Square(8)
		modeltest.InvariantStage(t, Occlusion, &occlusion, "maps", in)
	}
}

func mapsOf(t *testing.T, s stages.Stage, params any, in map[string][]stages.Data) [][]float64 {
	t.Helper()
	var out [][]float64
	for _, b := range stagetest.Run(t, s, params, in).Payloads["maps"] {
		m, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m.Float64s())
	}
	return out
}

// TestWholeWindow checks that a window over everything gives the fall from the image to the baseline, for
// every target and output.
func TestWholeWindow(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "imagenet")
	e, err := stagetest.Env(&Occlusion, in)
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	f, err := n.Forward(t.Context(), e.Slot, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := image(e, i, n, f.Image(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range f.Image(2) {
		f.Image(2)[i] = n.Black(i / 1024)
	}
	if err := f.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		target string
		class  func(i int) int
	}{
		{"predicted", func(i int) int { return 3 * i }},
		{"label", func(int) int { return 7 }},
		{"5", func(int) int { return 5 }},
	} {
		for _, output := range []string{"logit", "probability"} {
			p := &OcclusionParams{Tapped: tapped(), Variant: "paper", Window: picture.Square(32),
				Stride: picture.Square(32), Baseline: "black"}
			p.Target, p.Output = tt.target, output
			for i, m := range mapsOf(t, Occlusion, p, in) {
				target := program.Target{Class: tt.class(i), Minus: -1}
				want := p.response(n, f.Row(i), target) - p.response(n, f.Row(2), target)
				if !(math.Abs(m[0]-want) <= 1e-6) || m[0] != m[1023] {
					t.Errorf("target %s, %s: %v, want %v", tt.target, output, m[0], want)
				}
			}
		}
	}
}

// TestTargetDifference checks that a target of two classes explains the difference of their logits.
func TestTargetDifference(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	at := func(classes ...int64) []float64 {
		b := stages.NewTensor(classes, len(classes)).Encode()
		in["targets"] = []stages.Data{stagetest.Items(nil, b, b)}
		return mapsOf(t, Occlusion, nil, in)[0]
	}
	a, b, difference := at(2), at(6), at(2, 6)
	for i := range a {
		if !(math.Abs(a[i]-b[i]-difference[i]) <= 1e-5) {
			t.Fatalf("pixel %d: %v − %v isn't %v", i, a[i], b[i], difference[i])
		}
	}
}

func TestReduce(t *testing.T) {
	values := []float64{1, -2, -3, -4}
	for reduce, want := range map[metric.Reduction][]float64{
		"sum": {-2, -6}, "abs-sum": {2, 6}, "sum-abs": {4, 6}, "none": {1, -2, -3, -4},
	} {
		m := Common{Reduce: reduce}.reduced(values, 2, 1, 2)
		if d := cmp.Diff(want, m.Float64s()); d != "" {
			t.Errorf("%s: %s", reduce, d)
		}
	}
}

func TestCommonRefuses(t *testing.T) {
	for _, target := range []string{"", "predicted:best", "-1", "1.5", "predicted:0"} {
		if (Common{Target: target}).Validate() == nil {
			t.Errorf("target %q was accepted", target)
		}
	}
	nothing := func(string) bool { return false }
	p := RISE.NewParams().(*RISEParams)
	p.Target = "label"
	if err := RISE.Check(p, nothing); err == nil {
		t.Error("labels may be missing")
	}
	wired := func(string) bool { return true }
	for target, want := range map[string]bool{"predicted": true, "label": true, "7": true, "7-3": true,
		"predicted:2": false, "predicted-7": false} {
		p.Target = target
		if err := RISE.Check(p, wired); (err == nil) != want {
			t.Errorf("target %s with wired targets: error %v", target, err)
		}
	}
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	for target, want := range map[string]string{"10": "class 10 is not one of the model's 10",
		"predicted": "port targets has no class"} {
		p := Occlusion.NewParams().(*OcclusionParams)
		p.Target = target
		delete(in, "targets")
		if _, err := stagetest.Try(Occlusion, p, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("target %s: %v", target, err)
		}
	}
}

// TestRISEMasksAreFair checks that masks show a share p of the image on average everywhere, which the
// division by p relies on, and stay in [0,1].
func TestRISEMasksAreFair(t *testing.T) {
	const n, h, w, p = 4000, 9, 14, 0.3
	m := drawMasks(rand.New(rand.NewPCG(1, 2)), n, 3, p, h, w)
	mean := make([]float64, h*w)
	mask := make([]float32, h*w)
	for k := range n {
		m.render(k, mask)
		for i, v := range mask {
			if v < 0 || v > 1 {
				t.Fatalf("mask %d has the value %v", k, v)
			}
			mean[i] += float64(v) / n
		}
	}
	for i, v := range mean {
		if !(math.Abs(v-p) <= 0.04) { // five standard deviations
			t.Errorf("pixel %d shows with %v, want %v", i, v, p)
		}
	}
}

// TestRISEOfOneCell checks that a grid of one cell shows all or nothing.
func TestRISEOfOneCell(t *testing.T) {
	m := drawMasks(rand.New(rand.NewPCG(1, 2)), 20, 1, 0.5, 3, 3)
	mask := make([]float32, 9)
	for k := range 20 {
		m.render(k, mask)
		for _, v := range mask {
			if v != m.grids[k] {
				t.Fatalf("mask %d of grid %v has the value %v", k, m.grids[k], v)
			}
		}
	}
}
