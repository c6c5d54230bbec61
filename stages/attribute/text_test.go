package attribute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// A textCase is a network of texts, its texts, and what independent implementations compute of them.
type textCase struct {
	in      map[string][]stages.Data
	texts   []texttest.Text
	goldens map[string]npy.Array
}

// floats are the files of networks in single precision with an attention mask.
var floats = []string{"bert.trace", "bert.dynamo", "bert.optimum", "distilbert.trace", "distilbert.optimum",
	"roberta.dynamo", "roberta.optimum", "deberta.optimum", "electra.dynamo", "mpnet.trace", "fixed.own"}

// readText reads a network and its texts, and explains the classes of the goldens.
func readText(t testing.TB, file string) textCase {
	t.Helper()
	network := texttest.Network(file)
	c := textCase{texts: texttest.Texts(t, network), goldens: texttest.Goldens(t, network)}
	var items, targets [][]byte
	for i, x := range c.texts {
		items = append(items, tokensOf(x))
		targets = append(targets, stages.NewTensor([]int64{c.goldens["target"].Int64s()[i]}, 1).Encode())
	}
	c.in = map[string][]stages.Data{
		"model":   {modeltest.Model(t, model.ONNXParams{Path: texttest.Path(t, file)})},
		"images":  {stagetest.Items(textFacts(network), items...)},
		"targets": {stagetest.Items(nil, targets...)},
	}
	return c
}

func tokensOf(x texttest.Text) []byte {
	return stages.NewTensor(slices.Concat(x.IDs, x.Types, x.Special), 3, len(x.IDs)).Encode()
}

func textFacts(network string) stages.Facts {
	switch network {
	case "roberta", "mpnet":
		return stages.Facts{"pad": "1", "mask": "4"}
	case "bytes":
		return stages.Facts{"pad": "256"}
	}
	return stages.Facts{"pad": "0", "mask": "4"}
}

// flat returns the values of the maps of all texts, one after the other.
func (c textCase) flat(t *testing.T, s stages.Stage, params any) (out []float32) {
	t.Helper()
	for i, m := range mapsOf(t, s, params, c.in) {
		if len(m) != len(c.texts[i].IDs) {
			t.Fatalf("%s: text %d of %d tokens has a map of %d", s.Name, i, len(c.texts[i].IDs), len(m))
		}
		out = append(out, singles(m)...)
	}
	return out
}

// text32 is the tolerance of what is computed in double precision, relative to the largest.
const text32 = 5e-6

// leaveOneOut returns the parameters by which a token after the other is hidden.
func leaveOneOut(baseline string) *OcclusionParams {
	return &OcclusionParams{tapped(), "paper", picture.Square(1), picture.Square(1), baseline}
}

// TestTextGoldens holds methods on texts against independent implementations in double precision.
func TestTextGoldens(t *testing.T) {
	ig := func(baseline string) *IntegratedGradientsParams {
		return &IntegratedGradientsParams{plain(tapped()), 50, "gauss-legendre", baseline}
	}
	for _, file := range stagetest.Sample(t, 3, floats) {
		c := readText(t, file)
		for _, tt := range []struct {
			key       string
			stage     stages.Stage
			params    any
			tolerance float64
		}{
			{"gradient.words.abs", Saliency, &SaliencyParams{plain(tapped()), true}, text32},
			{"ixg.words", InputXGradient, &InputXGradientParams{plain(tapped())}, text32},
			{"ig.pad", IntegratedGradients, ig("pad"), text32},
			{"ig.mask", IntegratedGradients, ig("mask"), text32},
			{"ig.zero", IntegratedGradients, ig("zero"), text32},
			{"loo.mask", Occlusion, leaveOneOut("mask"), text32},
			{"loo.pad", Occlusion, leaveOneOut("pad"), text32},
			{"raw", RawAttention, &RawAttentionParams{common(), -1, -1}, text32},
			{"rollout", AttentionRollout, &AttentionRolloutParams{Common: common(), Normalise: true,
				Order: "last-first"}, text32},
		} {
			want, ok := c.goldens[tt.key]
			if !ok {
				t.Logf("%s: no %s", file, tt.key)
				continue
			}
			if file == "deberta.optimum" && tt.key == "ixg.words" {
				continue // 0: its normalisation has nothing but the words
			}
			values := want.Float32s()
			for k, v := range values {
				if math.IsNaN(float64(v)) {
					values[k] = 0 // at special tokens
				}
			}
			near(t, file+": "+tt.key, c.flat(t, tt.stage, tt.params), values, tt.tolerance)
		}
	}
}

// TestCancelledText checks the warning of derivatives that sum to 0 at each token, and that magnitudes have
// none.
func TestCancelledText(t *testing.T) {
	c := readText(t, "bert.trace")
	for reduce, want := range map[metric.Reduction]int{metric.Sum: 8, metric.AbsSum: 8, metric.SumAbs: 0} {
		p := &SaliencyParams{plain(tapped()), false}
		p.Reduce = reduce
		if w := stagetest.Run(t, Saliency, p, c.in).Warnings; len(w) != want {
			t.Errorf("reduce: %s: %d warnings, want %d: %q", reduce, len(w), want, w)
		}
	}
	if w := stagetest.Run(t, InputXGradient, nil, c.in).Warnings; len(w) > 0 {
		t.Errorf("input times gradient: %q", w)
	}
}

// only returns the inputs of one of the texts.
func (c textCase) only(t *testing.T, i int) map[string][]stages.Data {
	t.Helper()
	out := map[string][]stages.Data{"model": c.in["model"]}
	for _, port := range []string{"images", "targets"} {
		d := c.in[port][0]
		b, err := d.Load(i)
		if err != nil {
			t.Fatal(err)
		}
		out[port] = []stages.Data{stagetest.Items(d.Facts, b)}
	}
	return out
}

// TestNoisyText checks that noise is added to a text's embedding: without noise the map is that of the
// derivative, with noise the mean and the variance are those of derivatives at the noisy embedding.
func TestNoisyText(t *testing.T) {
	const samples = 7
	kept := tapped()
	kept.Reduce = metric.None
	for _, file := range []string{"bert.dynamo", "fixed.own", "bag.own"} {
		c := readText(t, file)
		in := c.only(t, 3)
		still := &SmoothGradParams{plain(kept), Copies{samples, 0, "range"}, "derivative"}
		near(t, file+" without noise", singles(mapsOf(t, SmoothGrad, still, in)[0]),
			singles(mapsOf(t, Saliency, &SaliencyParams{plain(kept), false}, in)[0]), 1e-6)

		drawn := func(int, []float32) func([]float32) {
			r := rand.New(rand.NewPCG(1, 2))
			return func(noise []float32) {
				for k := range noise {
					noise[k] = float32(r.NormFloat64()) / 4
				}
			}
		}
		run := func(s *stages.Stage, run func(context.Context, *stages.Env, *program.Net) error) []float32 {
			e, err := stagetest.Env(s, in)
			if err == nil {
				err = loaded(t.Context(), e, run)
			}
			if err != nil {
				t.Fatal(err)
			}
			return tensor(t, e.Outputs[0].Data)
		}
		smooth := SmoothGradParams{plain(kept), Copies{Samples: samples}, "derivative"}
		mean := run(&SmoothGrad, func(ctx context.Context, e *stages.Env, n *program.Net) error {
			return smooth.runNoise(ctx, e, n, drawn)
		})
		variance := run(&VarGrad, func(ctx context.Context, e *stages.Env, n *program.Net) error {
			return VarGradParams{plain(kept), Copies{Samples: samples}}.runNoise(ctx, e, n, drawn)
		})
		var m moments
		size := 0
		run(&Saliency, func(ctx context.Context, e *stages.Env, n *program.Net) error {
			w, err := plain(kept).walk(ctx, e, n, 1)
			if err != nil {
				return err
			}
			x, err := kept.ends(ctx, e, n, "zero")
			if err != nil {
				return err
			}
			target, err := kept.target(e, 0, n)
			if err != nil {
				return err
			}
			size = n.Width
			next := drawn(0, nil)
			write := func(_ int, dst []float32) {
				copy(dst, x.to[0])
				own := ownTokens(e, 0, n, dst)
				noise := make([]float32, len(own))
				next(noise)
				for k, v := range noise {
					own[k] += v
				}
			}
			for range samples {
				if err := w.along(ctx, target, x.images[0], 1, write,
					func(v visit) { m.add(v.gradient) }); err != nil {
					return err
				}
			}
			e.Put("maps", 0, stages.NewTensor([]float32{0}, 1).Encode())
			return nil
		})
		turned := func(values []float64) []float32 { // from tokens of components to components of tokens
			n, d := len(c.texts[3].IDs), len(values)/size
			out := make([]float32, n*d)
			for k := range n {
				for j := range d {
					out[j*n+k] = float32(values[k*d+j])
				}
			}
			return out
		}
		near(t, file+" mean", mean, turned(m.mean), 2e-6)
		near(t, file+" variance", variance, turned(m.variance()), 2e-6)
	}
}

// TestDeepLIFTOfTexts checks that contributions sum to the difference of the outputs, and that tokens that
// are the reference's have none.
func TestDeepLIFTOfTexts(t *testing.T) {
	for _, file := range stagetest.Sample(t, 3, floats) {
		c := readText(t, file)
		for _, baseline := range []string{"mask", "pad"} {
			network := texttest.Network(file)
			if baseline == "pad" && (network == "roberta" || network == "mpnet") {
				continue // places are counted from tokens that aren't pads, and move
			}
			p := &DeepLIFTParams{tapped(), "paper", baseline}
			r := stagetest.Run(t, DeepLIFT, p, c.in)
			for i, b := range r.Payloads["completeness"] {
				sum, most := 0.0, 0.0
				for k, v := range tensor(t, r.Payloads["maps"][i]) {
					sum, most = sum+float64(v), max(most, math.Abs(float64(v)))
					if v != 0 && c.texts[i].Special[k] == 1 {
						t.Errorf("%s, text %d: special token %d has %g", file, i, k, v)
					}
				}
				if excess := float64(tensor(t, b)[0]); !(math.Abs(excess) <= 1e-5*max(most, 1)) || sum == 0 {
					t.Errorf("%s, %s, text %d: the sum %g is off by %g", file, baseline, i, sum, excess)
				}
			}
		}
	}
}

// TestDeepLIFTOfMovedPositions checks that the warning of an incomplete map names the positions that move in
// a reference of pads.
func TestDeepLIFTOfMovedPositions(t *testing.T) {
	p := &DeepLIFTParams{tapped(), "paper", "pad"}
	r := stagetest.Run(t, DeepLIFT, p, readText(t, "roberta.dynamo").in)
	if w := strings.Join(r.Warnings, "\n"); !strings.Contains(w, "baseline: mask keeps them") {
		t.Errorf("warnings are %q", w)
	}
}

// TestInnerLayersOfTexts holds maps at a value behind the embedding, and class activation maps at the final
// layer against what derivatives and values there give.
func TestInnerLayersOfTexts(t *testing.T) {
	for _, file := range stagetest.Sample(t, 3,
		[]string{"bert.trace", "distilbert.optimum", "roberta.dynamo"}) {
		c := readText(t, file)
		at := func(layer, reduce string) Tapped {
			p := tapped()
			p.Layer, p.Reduce, p.Size = Layers(layer), metric.Reduction(reduce), "Layers(layer)"
			return p
		}
		g, err := modeltest.Net(t, c.in["model"][0]).Graph(t.Context(), stagetest.NewSlot(), 2)
		if err != nil {
			t.Fatal(err)
		}
		layers := relevance.Cuts(g)
		if len(layers) != 3 {
			t.Fatalf("%s: layers %q", file, layers)
		}
		near(t, file+" derivative", c.flat(t, Saliency, &SaliencyParams{plain(at(layers[0], "sum-abs")),
			false}),
			c.goldens["gradient.embeddings.abs"].Float32s(), text32)
		near(t, file+" input times gradient", c.flat(t, InputXGradient,
			&InputXGradientParams{plain(at(layers[0], "sum"))}), c.goldens["ixg.embeddings"].Float32s(),
			text32)

		signed := CAM{at("final", "sum"), false, "bilinear", joined()}
		near(t, file+" HiRes-CAM", c.flat(t, HiResCAM, &HiResCAMParams{GradientCAM{CAM: signed}}),
			c.flat(t, InputXGradient, &InputXGradientParams{plain(at("final", "sum"))}), text32)
		gradients := mapsOf(t, Saliency, &SaliencyParams{plain(at("final", "none")), false}, c.in)
		products := mapsOf(t, InputXGradient, &InputXGradientParams{plain(at("final", "none"))}, c.in)
		for i, cam := range mapsOf(t, GradCAM, &GradCAMParams{GradientCAM{CAM: signed}}, c.in) {
			n := len(c.texts[i].IDs)
			want := make([]float64, n)
			for channel := range slices.Chunk(slices.Collect(iota(len(gradients[i]))), n) {
				mean := 0.0
				for _, k := range channel {
					mean += gradients[i][k] / float64(n)
				}
				for j, k := range channel {
					want[j] += mean * products[i][k] / gradients[i][k]
				}
			}
			near(t, file+" Grad-CAM", singles(cam), singles(want), 1e-4)
		}
	}
}

func iota(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := 0; k < n && yield(k); k++ {
		}
	}
}

// TestHeadsOfTexts holds the attention of one head of a block against that of transformers.
func TestHeadsOfTexts(t *testing.T) {
	c := readText(t, "bert.optimum")
	for _, i := range []int{0, 1, 4} {
		want := c.goldens[fmt.Sprintf("attention.%d", i)]
		heads, n := want.Shape[1], want.Shape[2]
		for block := range want.Shape[0] {
			for head := range heads {
				got := mapsOf(t, RawAttention, &RawAttentionParams{common(), block, head}, c.only(t, i))[0]
				from := (block*heads + head) * n * n
				near(t, fmt.Sprintf("text %d, block %d, head %d", i, block, head), singles(got),
					want.Float32s()[from:from+n], text32)
			}
		}
	}
	for _, p := range []RawAttentionParams{{common(), 2, -1}, {common(), -3, -1}, {common(), 0, 4}} {
		if r, err := stagetest.Try(RawAttention, &p, c.in); err == nil {
			t.Errorf("block %d, head %d: %d maps", p.Block, p.Head, len(r.Payloads["maps"]))
		}
	}
}

// TestAblatedTexts holds the drops of single tokens that perturb/subset replaces, or removes.
func TestAblatedTexts(t *testing.T) {
	c := readText(t, "bert.trace")
	for _, substrate := range []string{"mask", "pad", "removal"} {
		p := perturb.Subset.NewParams().(*perturb.SubsetParams)
		p.Draw, p.Substrate, p.Samples, p.Paired = "single", substrate, 1, false
		r := stagetest.Run(t, perturb.Subset, p, c.in)
		in := map[string][]stages.Data{"model": c.in["model"], "images": c.in["images"]}
		for port, to := range map[string]string{"subsets": "subsets", "responses": "responses",
			"segments": "units"} {
			in[to] = []stages.Data{stagetest.Items(r.Facts[port], r.Payloads[port]...)}
		}
		want := c.goldens["loo."+substrate].Float32s()
		var got []float32
		for _, m := range mapsOf(t, FeatureAblation, nil, in) {
			got = append(got, singles(m)...)
		}
		for k, v := range want {
			if math.IsNaN(float64(v)) {
				want[k] = 0
			}
		}
		near(t, substrate, got, want, text32)
	}
}

// TestRefusedTexts checks that methods of pixels say why they take no texts, and what to use.
func TestRefusedTexts(t *testing.T) {
	c := readText(t, "bag.own")
	for _, s := range []stages.Stage{AGI, BlurIG, XRAI, RISE, ScoreCAM, ExpectedGradients} {
		port := s.Input("images")
		if port.Texts || !strings.Contains(port.NotTexts, ": use attribute/") {
			t.Errorf("%s: %q", s.Name, port.NotTexts)
		}
		_, err := stagetest.Try(s, nil, c.in)
		if err == nil || !strings.Contains(err.Error(), s.Name+" takes no texts: "+port.NotTexts) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for field, try := range map[string]func() error{
		"baseline": func() error { _, err := stagetest.Try(DeepLIFT, nil, c.in); return err },
		"substrate": func() error {
			_, err := stagetest.Try(PartitionSHAP, nil, c.in)
			return err
		},
	} {
		var bad *stages.FieldError
		if err := try(); !errors.As(err, &bad) || bad.Field != field ||
			!strings.Contains(bad.Hint, field+": mask") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestLRPConservationOfTexts checks that what reaches the embedding is what the maps sum to, on the average
// over texts of several lengths.
func TestLRPConservationOfTexts(t *testing.T) {
	for _, file := range []string{"bert.trace", "distilbert.optimum", "roberta.optimum", "electra.dynamo",
		"deberta.optimum", "bag.own"} {
		c := readText(t, file)
		var table stages.Table
		payload := stagetest.Run(t, LRPConservation, LRPConservation.NewParams(), c.in).Payloads["table"][0]
		if err := json.Unmarshal(payload, &table); err != nil {
			t.Fatal(err)
		}
		sum, size := 0.0, 0.0
		for _, m := range mapsOf(t, LRPEpsilon, LRPEpsilon.NewParams(), c.in) {
			for _, v := range m {
				sum += v / float64(len(c.texts))
				size += math.Abs(v) / float64(len(c.texts))
			}
		}
		last := table.Rows[len(table.Rows)-1]
		if got := float64(last.Numbers[1]); size == 0 || !(math.Abs(got-sum) <= 1e-4*size) {
			t.Errorf("%s: %v reaches the embedding at %v, the maps sum to %v", file, got, last.Keys, sum)
		}
	}
}

// TestRefusedUnits checks that methods of units whose defaults are for images say all that is to be written
// for texts, and take texts with that.
func TestRefusedUnits(t *testing.T) {
	texts := func(port string) bool { return port == stages.TextsName }
	for _, s := range []stages.Stage{KernelSHAP, LIME, ShapleySampling, FeatureAblation} {
		for _, tt := range []struct{ substrate, unit, field, hint string }{
			{"", "", "substrate", "write substrate: mask, unit: pixel; "},
			{"zero", "pixel", "substrate", "write substrate: mask, or pad or removal"},
			{"mask", "", "unit", "write unit: pixel"}, {"removal", "segment", "unit", "write unit: pixel"},
			{"mask", "pixel", "", ""}, {"pad", "pixel", "", ""}, {"removal", "pixel", "", ""},
		} {
			p := s.NewParams()
			of := reflect.ValueOf(p).Elem().FieldByName("Replaced").Addr().Interface().(*Replaced)
			of.Substrate, of.Unit = cmp.Or(tt.substrate, of.Substrate), cmp.Or(tt.unit, of.Unit)
			var bad *stages.FieldError
			err := s.Check(p, texts)
			switch errors.As(err, &bad); {
			case (err == nil) != (tt.field == ""):
				t.Errorf("%s, %+v: %v", s.Name, tt, err)
			case err != nil && (bad == nil || bad.Field != tt.field || !strings.HasPrefix(bad.Hint, tt.hint)):
				t.Errorf("%s, %+v: %+v", s.Name, tt, bad)
			}
		}
	}
}

// TestRulesOfTexts checks that rules for the layers that read pixels are refused where there are texts, whose
// layers never had them, and that what is to be written instead is taken.
func TestRulesOfTexts(t *testing.T) {
	first := func(s stages.Stage, set func(p any)) any {
		p := s.NewParams()
		set(p)
		return p
	}
	type fields struct{ field, write string }
	for name, tt := range map[string]struct {
		stage  stages.Stage
		params any
		want   fields
	}{
		"epsilon": {LRPEpsilon, LRPEpsilon.NewParams(), fields{}},
		"box": {LRPEpsilon, first(LRPEpsilon, func(p any) { p.(*LRPEpsilonParams).First = "box" }),
			fields{"first", "first: same"}},
		"image-box": {LRPAlphaBeta, first(LRPAlphaBeta,
			func(p any) { p.(*LRPAlphaBetaParams).First = "image-box" }), fields{"first", "first: same"}},
		"flat": {LRPGamma, first(LRPGamma, func(p any) { p.(*LRPGammaParams).First = "flat" }),
			fields{"first", "first: same"}},
		"w-square": {LRPZPlus, first(LRPZPlus, func(p any) { p.(*LRPZPlusParams).First = "w-square" }),
			fields{"first", "first: same"}},
		"clrp": {CLRP, CLRP.NewParams(), fields{}},
		"flat clrp": {CLRP, first(CLRP, func(p any) { p.(*CLRPParams).First = "flat" }),
			fields{"first", "first: same"}},
		"clrp with a preset": {CLRP, first(CLRP, func(p any) { p.(*CLRPParams).Rules = "epsilon-plus-flat" }),
			fields{"rules", "rules: epsilon-plus"}},
		"conservation": {LRPConservation, first(LRPConservation,
			func(p any) { p.(*LRPConservationParams).Rules = "epsilon-gamma-box" }),
			fields{"rules", "rules: epsilon-plus"}},
		"composite": {LRPComposite, LRPComposite.NewParams(), fields{"preset", "preset: epsilon-plus"}},
		"composite of two": {LRPComposite, first(LRPComposite,
			func(p any) { p.(*LRPCompositeParams).Preset = "epsilon-alpha2-beta1-flat" }),
			fields{"preset", "preset: epsilon-alpha2-beta1"}},
		"composite without": {LRPComposite, first(LRPComposite,
			func(p any) { p.(*LRPCompositeParams).Preset = "epsilon-plus" }), fields{}},
	} {
		if err := tt.stage.Check(tt.params, func(string) bool { return false }); err != nil {
			t.Errorf("%s of images: %v", name, err)
		}
		var bad *stages.FieldError
		err := tt.stage.Check(tt.params, func(port string) bool { return port == stages.TextsName })
		switch errors.As(err, &bad); {
		case (err == nil) != (tt.want == fields{}):
			t.Errorf("%s: %v", name, err)
		case err != nil && (bad == nil || bad.Field != tt.want.field || bad.Hint != "write "+tt.want.write):
			t.Errorf("%s: %v, %+v", name, err, bad)
		}
	}
}
