package attribute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

const linearSide = 6

// linearWeight is the weight of an element of an image for a class of the linear net.
func linearWeight(element, class int) float64 { return math.Sin(float64(1 + 3*element + 5*class)) }

// linearInput returns a net of two classes that is a weighted sum of an image's values, an image, and its
// first class.
func linearInput(t *testing.T, x []float32) map[string][]stages.Data {
	t.Helper()
	const n = 3 * linearSide * linearSide
	var w []float32
	for k := range n {
		w = append(w, float32(linearWeight(k, 0)), float32(linearWeight(k, 1)))
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name: "linear",
			Node: []*onnxpb.NodeProto{
				{OpType: "Flatten", Input: []string{"image"}, Output: []string{"values"}},
				{OpType: "Gemm", Input: []string{"values", "weight", "bias"}, Output: []string{"logits"}},
			},
			Initializer: []*onnxpb.TensorProto{onnx.FloatTensor("weight", w, n, 2),
				onnx.FloatTensor("bias", []float32{0.5, -1}, 2)},
		}}}
	number := onnxpb.TensorProto_FLOAT
	m.SetOutputs(onnx.Value{Name: "image", Elem: number, Shape: []int{-1, 3, linearSide, linearSide},
		Known: true})
	m.Proto.Graph.Input = m.Proto.Graph.Output
	m.SetOutputs(onnx.Value{Name: "logits", Elem: number, Shape: []int{-1, 2}, Known: true})
	file := modeltest.File(t, m)
	return map[string][]stages.Data{
		"model":   {modeltest.Model(t, model.ONNXParams{Path: file, Preset: "unit"})},
		"images":  {stagetest.Items(nil, stages.NewTensor(x, 3, linearSide, linearSide).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{0}, 1).Encode())},
	}
}

// background returns images as a background.
func background(images ...[]float32) []stages.Data {
	return []stages.Data{stagetest.Value(nil, stages.NewTensor(slices.Concat(images...), len(images), 3,
		linearSide, linearSide).Encode())}
}

// linearImage draws an image.
func linearImage(seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, 3*linearSide*linearSide)
	for k := range x {
		x[k] = r.Float32()
	}
	return x
}

// TestPathsOfALinearNet holds the methods along paths against what they are where the derivative is w
// everywhere: w·(x − b) for expected gradients, with the mean of the images drawn as b; w²/Σw² of the
// difference for IDGI; w·(x − b) times the difference for IDG, and for the official code times what its
// slopes, whose first is 0, and its last division leave; and for Blur IG what the blur takes from each pixel.
func TestPathsOfALinearNet(t *testing.T) {
	x, b, other := linearImage(5), linearImage(2), linearImage(3)
	in := linearInput(t, x)
	difference, squares := 0.0, 0.0
	for k := range x {
		w := linearWeight(k, 0)
		difference += w * float64(x[k])
		squares += w * w
	}
	if difference <= 0 {
		t.Fatalf("the output falls by %v: rounding places the official samples there", difference)
	}
	blurred := blurredOnce(x, 3)
	for name, tt := range map[string]struct {
		stage  stages.Stage
		params any
		port   string
		given  []stages.Data
		want   func(k int, w float64) float64
		within float64
	}{
		"expected gradients of one image": {ExpectedGradients,
			&ExpectedGradientsParams{unreduced().Common, Balanced{}, 7, 0}, "background", background(b),
			func(k int, w float64) float64 { return w * (float64(x[k]) - float64(b[k])) }, 1e-6},
		"expected gradients of two images": {ExpectedGradients,
			&ExpectedGradientsParams{unreduced().Common, Balanced{}, 8, 0}, "background", background(b,
				other),
			func(k int, w float64) float64 {
				return w * (float64(x[k]) - (float64(b[k])+float64(other[k]))/2)
			}, 1e-6},
		"expected gradients of itself": {ExpectedGradients,
			&ExpectedGradientsParams{unreduced().Common, Balanced{}, 5, 0}, "background", background(x),
			func(int, float64) float64 { return 0 }, 0},
		"idgi": {IDGI, &IDGIParams{plain(unreduced()), 9, "zero"}, "", nil,
			func(_ int, w float64) float64 { return w * w / squares * difference }, 1e-5},
		"idgi of itself": {IDGI, &IDGIParams{plain(unreduced()), 9, "zero"}, "baselines",
			[]stages.Data{stagetest.Items(nil, stages.NewTensor(x, 3, linearSide, linearSide).Encode())},
			func(int, float64) float64 { return 0 }, 0},
		"idg": {IDG, &IDGParams{plain(unreduced()), "paper", 9, "zero"}, "", nil,
			func(k int, w float64) float64 { return w * float64(x[k]) * difference }, 1e-5},
		// Nine samples of an eighth each, of which the first counts nothing, divided by nine.
		"official idg": {IDG, &IDGParams{plain(unreduced()), "official", 9, "zero"}, "", nil,
			func(k int, w float64) float64 { return w * float64(x[k]) * difference / 9 }, 1e-4},
		"blur-ig": {BlurIG, &BlurIGParams{unreduced().Common, Balanced{}, 2000, 3, "linear", 0}, "", nil,
			func(k int, w float64) float64 { return w * (float64(x[k]) - blurred[k]) }, 3e-3},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.port != "" {
				in[tt.port] = tt.given
				defer delete(in, tt.port)
			}
			got := tensor(t, stagetest.Run(t, tt.stage, tt.params, in).Payloads["maps"][0])
			for k, v := range got {
				want := tt.want(k, linearWeight(k, 0))
				if !(math.Abs(float64(v)-want) <= tt.within*max(1, math.Abs(difference))) {
					t.Fatalf("value %d is %v, want %v", k, v, want)
				}
			}
		})
	}
}

// blurredOnce blurs an image of the linear net, pixel by pixel from the weights of two dimensions, with zeros
// beyond it.
func blurredOnce(x []float32, sigma float64) []float64 {
	out := make([]float64, len(x))
	const window = 12 // of a Gaussian of 3
	total := 0.0
	for di := -window; di <= window; di++ {
		for dj := -window; dj <= window; dj++ {
			total += math.Exp(-float64(di*di+dj*dj) / (2 * sigma * sigma))
		}
	}
	for k := range x {
		c, i, j := k/(linearSide*linearSide), k/linearSide%linearSide, k%linearSide
		for a := range linearSide {
			for b := range linearSide {
				w := math.Exp(-float64((a-i)*(a-i)+(b-j)*(b-j)) / (2 * sigma * sigma))
				out[k] += w / total * float64(x[(c*linearSide+a)*linearSide+b])
			}
		}
	}
	return out
}

// TestPathsAreComplete checks that maps sum to the difference of the answers that the method explains plus
// what the port completeness has: for IDGI nothing, whatever the steps, and for expected gradients less the
// more samples there are.
func TestPathsAreComplete(t *testing.T) {
	in := pathInput(t, "vgg", 0)
	in["background"] = []stages.Data{pathBackground()}
	total := func(s stages.Stage, params any) (sum, excess float64) {
		t.Helper()
		r := stagetest.Run(t, s, params, in)
		for _, v := range tensor(t, r.Payloads["maps"][0]) {
			sum += float64(v)
		}
		excess, err := stages.ScalarOf(r.Payloads["completeness"][0])
		if err != nil {
			t.Fatal(err)
		}
		return sum, excess
	}
	x := tensor32(pathImage(0))
	common := unreduced().Common
	fall := fallOf(t, in, x)
	for _, steps := range []int{2, 3, 50} {
		sum, excess := total(IDGI, &IDGIParams{plain(unreduced()), steps, "zero"})
		if !(math.Abs(sum-fall) <= 1e-5*math.Abs(fall)) || math.Abs(excess) > 1e-9 {
			t.Errorf("IDGI of %d steps sums to %v with %v left over, want %v", steps, sum, excess, fall)
		}
	}
	mean := 0.0
	for k := 2; k < 7; k++ {
		mean += fallOf(t, in, tensor32(pathImage(k))) / 5
	}
	left := 0.0
	for _, samples := range []int{5, 500} {
		sum, excess := total(ExpectedGradients, &ExpectedGradientsParams{common, Balanced{}, samples, 0})
		if want := fall - mean + excess; !(math.Abs(sum-want) <= 1e-5*math.Abs(want)) {
			t.Errorf("expected gradients of %d samples sum to %v with %v left over, want %v", samples, sum,
				excess, want)
		}
		left = math.Abs(excess)
	}
	if !(left <= 0.05) {
		t.Errorf("500 samples leave %v of %v", left, fall-mean)
	}
	for _, steps := range []int{10, 400} {
		_, excess := total(BlurIG, &BlurIGParams{common, Balanced{}, steps, 4, "sqrt", 0})
		if !(math.Abs(excess) <= 20/float64(steps)) {
			t.Errorf("Blur IG of %d steps leaves %v", steps, excess)
		}
	}
}

// fallOf returns how far the explained output falls from an image to the zero of the normalised image.
func fallOf(t *testing.T, in map[string][]stages.Data, x []float32) float64 {
	t.Helper()
	image := stagetest.Items(nil, stages.NewTensor(x, 3, pathSide, pathSide).Encode())
	all := picture.Square(pathSide)
	p := &OcclusionParams{Tapped: tapped(), Variant: "paper", Window: all, Stride: all, Baseline: "zero"}
	return mapsOf(t, Occlusion, p, map[string][]stages.Data{"model": in["model"], "targets": in["targets"],
		"images": {image}})[0][0]
}

// tensor32 returns an image's values from 0 to 1.
func tensor32(image stages.Tensor) []float32 {
	var out []float32
	for _, v := range image.Raw {
		out = append(out, float32(v)/255)
	}
	return out
}

// TestExpectedGradientsOfOneImage checks that they are integrated gradients from it, the better the more
// samples there are: t is stratified.
func TestExpectedGradientsOfOneImage(t *testing.T) {
	in := pathInput(t, "resnet", 1)
	in["baselines"] = []stages.Data{stagetest.Items(nil, pathImage(3).Encode())}
	want := tensor(t, stagetest.Run(t, IntegratedGradients, &IntegratedGradientsParams{plain(unreduced()),
		400,
		"gauss-legendre", "zero"}, in).Payloads["maps"][0])
	delete(in, "baselines")
	one := pathImage(3)
	one.Shape = []int{1, 3, pathSide, pathSide}
	in["background"] = []stages.Data{stagetest.Value(nil, one.Encode())}
	for samples, within := range map[int]float64{20: 0.3, 400: 0.02} {
		got := tensor(t, stagetest.Run(t, ExpectedGradients, &ExpectedGradientsParams{unreduced().Common,
			Balanced{},
			samples, 0}, in).Payloads["maps"][0])
		apart(t, fmt.Sprintf("%d samples", samples), got, want, within)
	}
}

// TestStratified checks that all images are drawn equally often, up to one, and that each stratum of t has
// one draw, of any image.
func TestStratified(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range [][2]int{{1, 1}, {7, 1}, {7, 7}, {23, 5}, {5, 23}} {
		n, images := tt[0], tt[1]
		firsts, other := map[int]bool{}, n < 2*images || images == 1 // another order the second time
		for range 200 {
			counts := make([]int, images)
			draws := stratified(r, n, images)
			for k, d := range draws {
				other = other || k >= images && d.image != draws[k-images].image
				counts[d.image]++
				if d.t <= float64(k)/float64(n) || d.t >= float64(k+1)/float64(n) {
					t.Fatalf("%d draws: number %d at %v", n, k, d.t)
				}
				if k == 0 {
					firsts[d.image] = true
				}
			}
			if slices.Max(counts)-slices.Min(counts) > 1 {
				t.Fatalf("%d draws of %d images: %v", n, images, counts)
			}
		}
		if !other {
			t.Errorf("%d draws of %d images: the same order again and again", n, images)
		}
		if len(firsts) != images {
			t.Errorf("%d of %d images come first", len(firsts), images)
		}
	}
}

// TestIDGIUndefined checks that a point whose derivative isn't a number leaves no value defined.
func TestIDGIUndefined(t *testing.T) {
	s := newChanges(2)
	for k, g := range []float32{1, float32(math.NaN()), 1} {
		s.take(visit{k, float64(k), []float32{g, 2}})
	}
	for k, v := range s.sum {
		if !math.IsNaN(v) {
			t.Errorf("value %d is %v", k, v)
		}
	}
}

// TestSamples holds the positions of IDG's samples against cases computed by hand.
func TestSamples(t *testing.T) {
	for _, tt := range []struct {
		name      string
		samples   func([]float64) []sample
		responses []float64
		want      []sample
	}{
		// Slopes 0, 3, 1: shares 0, 3, 1 of four samples in intervals of a third.
		{"paper", samplesBySlope, []float64{1, 1, 4, 5}, []sample{{1. / 3, 4. / 9}, {4. / 9, 1. / 9},
			{5. / 9, 1. / 9}, {2. / 3, 1. / 3}}},
		{"paper, equal slopes", samplesBySlope, []float64{0, 1, 2}, []sample{{0, .25}, {.25, .25}, {.5, .5}}},
		{"paper, a constant", samplesBySlope, []float64{2, 2}, []sample{{0, .5}, {.5, .5}}},
		// Negative slopes: −1, 1, 0 are the shares 0, 1 and ½ of 1½, so 2⅔ and 1⅓ of four.
		{"paper, a fall", samplesBySlope, []float64{1, 0, 1, 1}, []sample{{1. / 3, 4. / 9}, {4. / 9, 1. / 9},
			{5. / 9, 1. / 9}, {2. / 3, 1. / 3}}},
		// The same slopes after 0 for the first response: three samples in the first third, one in the next.
		{"official", officialSamples, []float64{1, 1, 4, 5}, []sample{{0, 1. / 9}, {1. / 9, 1. / 9},
			{2. / 9, 1. / 9}, {1. / 3, 1. / 3}}},
		// Slopes 0, −2, −2: shares 1, 0, 0, of which the first becomes 0. No sum is left to divide by.
		{"official, an even fall", officialSamples, []float64{2, 1, 0}, []sample{{0, .5}, {.5, .5}, {1, .5}}},
		{"paper, infinite", samplesBySlope, []float64{1, math.Inf(1), 2}, []sample{{0, .25}, {.25, .25},
			{.5, .5}}},
		{"official, infinite", officialSamples, []float64{1, math.Inf(1), 2}, []sample{{0, .5}, {.5, .5},
			{1, .5}}},
		// Slopes 0, −1, 1, 0 (thirds): shares 0 for the first, 0, 1, ½; 2⅔ is 2, 1⅓ is 1, and the sample
		// that is left takes the first of the empty places.
		{"official, a fall", officialSamples, []float64{1, 0, 1, 1}, []sample{{0, 1. / 3}, {1. / 3, 1. / 6},
			{.5, 1. / 6}, {2. / 3, 1. / 3}}},
	} {
		got := tt.samples(tt.responses)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			continue
		}
		for k, s := range got {
			if math.Abs(s.at-tt.want[k].at) > 1e-12 || math.Abs(s.width-tt.want[k].width) > 1e-12 {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
				break
			}
		}
	}
}

// TestGaussian checks that weights sum to 1 over both sides, and their slopes to 0, and that slopes are
// differences.
func TestGaussian(t *testing.T) {
	for _, sigma := range []float64{0, 0.01, 0.3, 1, 2.6, 50} {
		const far = 300
		w := gaussian(sigma, far)
		slope := slopeOfGaussian(w, sigma)
		both := func(v []float64) float64 { return 2*totalOf(v) - v[0] }
		if math.Abs(both(w)-1) > 1e-12 || math.Abs(both(slope)) > 1e-12 {
			t.Errorf("sigma %v: sums %v and %v", sigma, both(w), both(slope))
		}
		if sigma == 0 {
			continue
		}
		const step = 1e-6
		ahead := gaussian(sigma+step, far)
		for k, v := range slope {
			if d := (ahead[k] - w[k]) / step; math.Abs(d-v) > 1e-4*max(1, math.Abs(v)) {
				t.Errorf("sigma %v: slope %d is %v, the difference %v", sigma, k, v, d)
			}
		}
	}
}

// TestPathBits checks that maps and what is left over don't depend on batches, threads and other items.
func TestPathBits(t *testing.T) {
	for _, net := range []string{"resnet", "vit"} {
		in := pathInput(t, net, 0)
		in["images"] = []stages.Data{stagetest.Items(nil, pathImage(0).Encode(), pathImage(1).Encode())}
		class := stages.NewTensor([]int64{3}, 1).Encode()
		in["targets"] = []stages.Data{stagetest.Items(nil, class, class)}
		in["background"] = []stages.Data{pathBackground()}
		for _, m := range stagetest.Sample(t, 2, []struct {
			stage  stages.Stage
			params any
		}{
			{ExpectedGradients, &ExpectedGradientsParams{common(), Balanced{}, 7, 0}},
			{IDGI, &IDGIParams{plain(tapped()), 6, "black"}},
			{IDGI, &IDGIParams{plain(tappedAt("final")), 6, "black"}},
			{IDG, &IDGParams{plain(tapped()), "paper", 6, "black"}},
			{IDG, &IDGParams{plain(tappedAt("final")), "official", 6, "black"}},
			{BlurIG, &BlurIGParams{common(), Balanced{}, 6, 10, "sqrt", 0.01}},
		}) {
			modeltest.InvariantStage(t, m.stage, m.params, "maps", in)
			if m.stage.Output("completeness") != nil {
				modeltest.InvariantStage(t, m.stage, m.params, "completeness", in)
			}
		}
	}
}
