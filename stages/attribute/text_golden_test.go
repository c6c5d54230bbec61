package attribute

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// Tolerances relative to the largest magnitude in a text. PyTorch in single precision lies up to 4e-6 of it
// from the goldens, and half precision has 11 bits, of which a difference of two answers loses some.
const (
	words32      = 1e-5
	words16      = 1e-3
	difference16 = 1e-2
)

// layerNorms are the values behind the normalisation of all embeddings, which exporters call differently.
var layerNorms = map[string]string{
	"bert.trace":         "/bert/embeddings/LayerNorm/Add_1_output_0",
	"bert.dynamo":        "layer_norm",
	"bert.optimum":       "/bert/embeddings/LayerNorm/LayerNormalization_output_0",
	"bert.half":          "/bert/embeddings/LayerNorm/LayerNormalization_output_0",
	"distilbert.trace":   "/distilbert/embeddings/LayerNorm/Add_1_output_0",
	"distilbert.optimum": "/distilbert/embeddings/LayerNorm/Add_1_output_0",
	"roberta.dynamo":     "layer_norm",
	"roberta.optimum":    "/roberta/embeddings/LayerNorm/Add_1_output_0",
	"deberta.optimum":    "/deberta/embeddings/LayerNorm/Add_1_output_0",
	"electra.dynamo":     "layer_norm",
	"mpnet.trace":        "/mpnet/embeddings/LayerNorm/LayerNormalization_output_0",
	"fixed.own":          "embeddings",
}

// values returns a golden with a value a token, text by text.
func (c textCase) values(t *testing.T, key string) (out [][]float64) {
	t.Helper()
	v := c.goldens[key].Float64s()
	for _, x := range c.texts {
		if len(v) < len(x.IDs) {
			t.Fatalf("no golden %s of all tokens", key)
		}
		out, v = append(out, v[:len(x.IDs)]), v[len(x.IDs):]
	}
	return out
}

// some returns the inputs of methods for some of the texts.
func (c textCase) some(t *testing.T, which ...int) map[string][]stages.Data {
	t.Helper()
	in := map[string][]stages.Data{"model": c.in["model"]}
	for _, port := range []string{"images", "targets"} {
		d := c.in[port][0]
		var payloads [][]byte
		for _, k := range which {
			b, err := d.Load(k)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, b)
		}
		in[port] = []stages.Data{stagetest.Items(d.Facts, payloads...)}
	}
	return in
}

// answer returns the largest magnitude of a text's logits.
func (c textCase) answer(k int) (most float64) {
	classes := c.goldens["logits"].Shape[1]
	for _, z := range c.goldens["logits"].Float64s()[k*classes : (k+1)*classes] {
		most = max(most, math.Abs(z))
	}
	return most
}

// each compares the maps of all texts, of eight lengths in one call, with a golden, relative to the largest
// magnitude in the text of another one. Special tokens that it leaves out count as 0.
func (c textCase) each(t *testing.T, s stages.Stage, params any, key, scale string, tolerance float64) {
	t.Helper()
	want, size := c.values(t, key), c.values(t, scale)
	for k, got := range mapsOf(t, s, params, c.in) {
		if len(got) != len(want[k]) {
			t.Fatalf("%s: the map of a text of %d tokens has %d values", key, len(want[k]), len(got))
		}
		var most, off float64
		if strings.HasPrefix(key, "loo.") { // a difference of answers is off by as much as these
			most = c.answer(k)
		}
		for i, w := range want[k] {
			if c.texts[k].Special[i] == 1 && math.IsNaN(w) {
				w = 0
			} else {
				most = max(most, math.Abs(size[k][i]))
			}
			off = max(off, math.Abs(got[i]-w)) // NaN stays
		}
		if !(off <= tolerance*most) {
			t.Errorf("%s: text %d of %d tokens deviates by %.2g of %.2g", key, k, len(got), off, most)
		}
	}
}

// TestWordsOfEveryFile holds the simplest methods, at the words and behind the normalisation, and the drop of
// the answer without a word against direct computations, for all exporters and precisions.
func TestWordsOfEveryFile(t *testing.T) {
	for _, file := range stagetest.Sample(t, 3, texttest.Files(t)) {
		t.Run(file, func(t *testing.T) {
			c := readText(t, file)
			one, two := words32, words32
			if strings.HasSuffix(file, ".half") {
				one, two = words16, difference16
			}
			hidden := func(b string) *OcclusionParams {
				return &OcclusionParams{Tapped: tapped(), Variant: "paper", Window: picture.Square(1),
					Stride: picture.Square(1), Baseline: b}
			}
			if strings.HasSuffix(file, ".int8") { // whose golden is of other weights
				mapsOf(t, Occlusion, hidden("mask"), c.in)
				return
			}
			c.each(t, Saliency, &SaliencyParams{plain(tapped()), true}, "gradient.words.abs",
				"gradient.words.abs",
				one)
			c.each(t, Saliency, &SaliencyParams{plain(tapped()), false}, "gradient.words.sum",
				"gradient.words.abs",
				one)
			c.each(t, InputXGradient, &InputXGradientParams{plain(tapped())}, "ixg.words", "ixg.words.abs",
				one)
			for _, b := range []string{"mask", "pad"} {
				if b == "mask" && texttest.Network(file) == "bytes" {
					continue
				}
				c.each(t, Occlusion, hidden(b), "loo."+b, "loo."+b, two)
				c.each(t, IntegratedGradients, &IntegratedGradientsParams{plain(tapped()), 50,
					"gauss-legendre", b},
					"ig."+b, "ig."+b, 2*one)
			}
			if at := tapped(); layerNorms[file] != "" {
				at.Layer = Layers(layerNorms[file])
				c.each(t, Saliency, &SaliencyParams{plain(at), true}, "gradient.embeddings.abs",
					"gradient.embeddings.abs", one)
				c.each(t, InputXGradient, &InputXGradientParams{plain(at)}, "ixg.embeddings",
					"ixg.embeddings.abs",
					one)
			}
		})
	}
}

// TestAttnLRPOfTexts holds LRP with halved gates and no ε against lxt.
func TestAttnLRPOfTexts(t *testing.T) {
	for _, file := range []string{"bert.trace", "bert.dynamo", "bert.optimum", "bert.half"} {
		p := LRPEpsilon.NewParams().(*LRPEpsilonParams)
		p.Epsilon, p.Stabiliser, p.Gates = 0, 0, "halved"
		tolerance := words32
		if file == "bert.half" {
			tolerance = words16
		}
		readText(t, file).each(t, LRPEpsilon, p, "attnlrp", "attnlrp", tolerance)
	}
}

// TestAttentionOfTexts multiplies the attention that transformers returns.
func TestAttentionOfTexts(t *testing.T) {
	c := readText(t, "bert.dynamo")
	for _, form := range []struct {
		normalise bool
		order     string
	}{{true, "first-last"}, {false, "last-first"}, {false, "first-last"}} {
		p := &AttentionRolloutParams{Common: common(), Normalise: form.normalise, Order: form.order}
		got := mapsOf(t, AttentionRollout, p, c.in)
		for k, golden := range map[int]string{0: "attention.0", 1: "attention.1", 4: "attention.4"} {
			a := c.goldens[golden]
			want := rolled(a.Float64s(), a.Shape, form.normalise, form.order == "first-last")
			for i, v := range want {
				if d := math.Abs(got[k][i] - v); !(d <= words32*slices.Max(want)) {
					t.Errorf("%+v: text %d, token %d: %v, want %v", form, k, i, got[k][i], v)
				}
			}
		}
	}
}

// rolled returns the first token's row of the product of I + A over blocks, from [blocks, heads, n, n].
func rolled(a []float64, shape []int, normalise, firstLast bool) []float64 {
	heads, n := shape[1], shape[2]
	row := make([]float64, n)
	row[0] = 1
	for step := range shape[0] {
		block := step
		if !firstLast {
			block = shape[0] - 1 - step
		}
		next := make([]float64, n)
		for q := range n {
			mixed, sum := make([]float64, n), 1.0
			mixed[q] = 1
			for h := range heads {
				for k := range n {
					v := a[((block*heads+h)*n+q)*n+k] / float64(heads)
					mixed[k], sum = mixed[k]+v, sum+v
				}
			}
			for k, v := range mixed {
				if normalise {
					v /= sum
				}
				next[k] += row[q] * v
			}
		}
		row = next
	}
	return row
}

// TestShapleyValuesOfTexts holds what KernelSHAP finds by twenty thousand subsets against the values by all
// subsets, within the error of the draw: a fiftieth of the largest value.
func TestShapleyValuesOfTexts(t *testing.T) {
	c, short := readText(t, "bert.dynamo"), []int{0, 1, 2, 3, 5, 6} // the others have no golden
	p := perturb.Subset.NewParams().(*perturb.SubsetParams)
	p.Draw, p.Substrate, p.Samples, p.Paired = "shapley", "mask", 10000, true
	in := c.some(t, short...)
	r := stagetest.Run(t, perturb.Subset, p, in)
	for port, to := range map[string]string{"subsets": "subsets", "responses": "responses",
		"segments": "units"} {
		in[to] = []stages.Data{stagetest.Items(r.Facts[port], r.Payloads[port]...)}
	}
	want := c.values(t, "shapley")
	for i, got := range mapsOf(t, KernelSHAP, nil, in) {
		k := short[i]
		var most, off float64
		for token, w := range want[k] {
			if c.texts[k].Special[token] == 0 {
				most, off = max(most, math.Abs(w)), max(off, math.Abs(got[token]-w))
			}
		}
		if !(off <= 2e-2*most) {
			t.Errorf("text %d of %d tokens deviates by %.2g of %.2g", k, len(got), off, most)
		}
	}
}

// TestTextAlone checks that a text's map doesn't depend on the texts that it is explained with.
func TestTextAlone(t *testing.T) {
	for _, file := range []string{"bert.optimum", "distilbert.trace", "roberta.dynamo", "bag.own",
		"bytes.own"} {
		c := readText(t, file)
		p := &IntegratedGradientsParams{plain(tapped()), 8, "gauss-legendre", "pad"}
		together := mapsOf(t, IntegratedGradients, p, c.in)
		for _, k := range []int{0, 3, 7} {
			alone := mapsOf(t, IntegratedGradients, p, c.some(t, k))[0]
			if !slices.Equal(alone, together[k]) {
				t.Errorf("%s: text %d is %v alone and %v with others", file, k, alone, together[k])
			}
		}
	}
}
