package attribute

import (
	maps0 "maps"
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

// each compares the maps of all texts, of eight lengths in one call, with a golden, relative to the largest
// magnitude in the text of another one. Special tokens that it leaves out count as 0.
func (c textCase) each(t *testing.T, s stages.Stage, params any, key, scale string, tolerance float64) {
	t.Helper()
	want, size := c.goldens[key].Float64s(), c.goldens[scale].Float64s()
	if len(want) == 0 {
		t.Fatalf("no golden %s", key)
	}
	logits := c.goldens["logits"]
	got := c.flat(t, s, params)
	at := 0
	for k, x := range c.texts {
		var most, off float64
		if strings.HasPrefix(key, "loo.") { // a difference of answers, which is off by as much as these
			for _, z := range logits.Float64s()[k*logits.Shape[1] : (k+1)*logits.Shape[1]] {
				most = max(most, math.Abs(z))
			}
		}
		for i, special := range x.Special {
			w := want[at+i]
			if special == 1 && math.IsNaN(w) {
				w = 0
			} else {
				most = max(most, math.Abs(size[at+i]))
			}
			off = max(off, math.Abs(float64(got[at+i])-w)) // NaN stays
		}
		if !(off <= tolerance*most) {
			t.Errorf("%s: text %d of %d tokens deviates by %.2g of %.2g", key, k, len(x.IDs), off, most)
		}
		at += len(x.IDs)
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
			c.each(t, Saliency, &SaliencyParams{tapped(), true}, "gradient.words.abs", "gradient.words.abs", one)
			c.each(t, Saliency, &SaliencyParams{tapped(), false}, "gradient.words.sum", "gradient.words.abs",
				one)
			c.each(t, InputXGradient, &InputXGradientParams{tapped()}, "ixg.words", "ixg.words.abs", one)
			for _, b := range []string{"mask", "pad"} {
				if b == "mask" && texttest.Network(file) == "bytes" {
					continue
				}
				c.each(t, Occlusion, hidden(b), "loo."+b, "loo."+b, two)
				c.each(t, IntegratedGradients, &IntegratedGradientsParams{tapped(), 50, "gauss-legendre", b},
					"ig."+b, "ig."+b, 2*one)
			}
			if at := tapped(); layerNorms[file] != "" {
				at.Layer = layerNorms[file]
				c.each(t, Saliency, &SaliencyParams{at, true}, "gradient.embeddings.abs",
					"gradient.embeddings.abs", one)
				c.each(t, InputXGradient, &InputXGradientParams{at}, "ixg.embeddings", "ixg.embeddings.abs", one)
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
// subsets. Its error is that of the draw, a few thousandths of the answer.
func TestShapleyValuesOfTexts(t *testing.T) {
	c := readText(t, "bert.dynamo")
	p := perturb.Subset.NewParams().(*perturb.SubsetParams)
	p.Draw, p.Substrate, p.Samples, p.Paired = "shapley", "mask", 10000, true
	in := maps0.Clone(c.in)
	r := stagetest.Run(t, perturb.Subset, p, in)
	for port, to := range map[string]string{"subsets": "subsets", "responses": "responses", "segments": "units"} {
		in[to] = []stages.Data{stagetest.Items(r.Facts[port], r.Payloads[port]...)}
	}
	got := mapsOf(t, KernelSHAP, nil, in)
	want := c.goldens["shapley"].Float64s()
	compared := 0
	for k, x := range c.texts {
		var most, off float64
		for i, w := range want[:len(x.IDs)] {
			if math.IsNaN(w) {
				continue
			}
			compared++
			most, off = max(most, math.Abs(w)), max(off, math.Abs(got[k][i]-w))
		}
		if t.Logf("text %d: %.2g of %.2g", k, off, most); !(off <= 2e-2*most) {
			t.Errorf("text %d deviates by %.2g of %.2g", k, off, most)
		}
		want = want[len(x.IDs):]
	}
	if compared < 30 {
		t.Errorf("%d values compared", compared)
	}
}

// TestTextAlone checks that a text's map doesn't depend on the texts that it is explained with.
func TestTextAlone(t *testing.T) {
	for _, file := range []string{"bert.optimum", "distilbert.trace", "roberta.dynamo", "bag.own", "bytes.own"} {
		c := readText(t, file)
		p := &IntegratedGradientsParams{tapped(), 8, "gauss-legendre", "pad"}
		together := mapsOf(t, IntegratedGradients, p, c.in)
		for _, k := range []int{0, 3, 7} {
			in := map[string][]stages.Data{"model": c.in["model"]}
			for _, port := range []string{"images", "targets"} {
				d := c.in[port][0]
				payload, err := d.Load(k)
				if err != nil {
					t.Fatal(err)
				}
				in[port] = []stages.Data{stagetest.Items(d.Facts, payload)}
			}
			if alone := mapsOf(t, IntegratedGradients, p, in)[0]; !slices.Equal(alone, together[k]) {
				t.Errorf("%s: text %d is %v alone and %v with others", file, k, alone, together[k])
			}
		}
	}
}
