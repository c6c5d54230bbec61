package perturb

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// tenths are the shares of comprehensiveness and sufficiency.
var tenths = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// A textCase is a network with its texts, the tokens of which are those of its goldens one after the other.
type textCase struct {
	model, texts, targets stages.Data
	tokens                []modelfile.Tokenised
}

func newTextCase(t *testing.T, file string) textCase {
	t.Helper()
	network := texttest.Network(file)
	c := textCase{model: modeltest.Model(t, model.ONNXParams{Path: texttest.Path(t, file)})}
	facts := stages.Facts{"pad": "0", "mask": "4"}
	switch network {
	case "roberta", "mpnet":
		facts["pad"] = "1"
	case "bytes":
		facts = stages.Facts{"pad": "256"}
	}
	classes := texttest.Goldens(t, network)["target"].Int64s()
	var texts, targets [][]byte
	for i, text := range texttest.Texts(t, network) {
		x := modelfile.Tokenised{IDs: text.IDs, Types: text.Types}
		for _, special := range text.Special {
			x.Special = append(x.Special, special != 0)
		}
		c.tokens = append(c.tokens, x)
		texts = append(texts, x.Tensor().Encode())
		targets = append(targets, stages.NewTensor([]int64{classes[i]}, 1).Encode())
	}
	c.texts, c.targets = stagetest.Items(facts, texts...), stagetest.Items(nil, targets...)
	return c
}

// in returns the inputs of a stage that takes maps, by their order.
func (c textCase) in(t *testing.T, maps [][]byte, rank any) map[string][]stages.Data {
	t.Helper()
	return map[string][]stages.Data{"model": {c.model}, "images": {c.texts}, "targets": {c.targets},
		"maps": {stagetest.Items(nil, ranksOfTexts(t, c.texts, maps, rank)...)}}
}

func ranksOfTexts(t *testing.T, texts stages.Data, payloads [][]byte, p any) [][]byte {
	t.Helper()
	return stagetest.Run(t, maps.Rank, p, map[string][]stages.Data{
		"maps": {stagetest.Items(nil, payloads...)}, stages.TextsName: {texts}}).Payloads["ranks"]
}

// only returns one of the items.
func only(t *testing.T, d stages.Data, i int) stages.Data {
	t.Helper()
	payload, err := d.Load(i)
	if err != nil {
		t.Fatal(err)
	}
	return stagetest.Items(d.Facts, payload)
}

// maps returns the maps of an array with a value a token.
func (c textCase) maps(values []float64) (out [][]byte) {
	for _, x := range c.tokens {
		out = append(out, stages.NewTensor(slices.Clone(values[:x.Len()]), 1, x.Len()).Encode())
		values = values[x.Len():]
	}
	return out
}

// random returns maps of random numbers.
func (c textCase) random(seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var values []float64
	for _, x := range c.tokens {
		for range x.Len() {
			values = append(values, r.NormFloat64())
		}
	}
	return c.maps(values)
}

func rankParams(values string) *maps.RankParams {
	p := maps.Rank.NewParams().(*maps.RankParams)
	p.Values = values
	return p
}

// rowOf returns a row of a curve.
func rowOf(t *testing.T, payload []byte, row int) []float64 {
	t.Helper()
	x, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return x.Float64s()[row*x.Shape[1] : (row+1)*x.Shape[1]]
}

// substratesOf returns the substrates that a network's tokeniser has.
func substratesOf(file string) []string {
	if strings.HasPrefix(file, "bytes") {
		return []string{"pad", "removal"}
	}
	return []string{"mask", "pad", "removal"}
}

// exact are the files whose weights are those of the goldens.
func exactFiles(t *testing.T) (files []string) {
	for _, file := range texttest.Files(t) {
		if !strings.HasSuffix(file, ".int8") && !strings.HasSuffix(file, ".half") {
			files = append(files, file)
		}
	}
	return stagetest.Sample(t, 4, files)
}

// TestGoldenTokens compares the responses to texts without their most relevant tokens, and to these alone,
// with those of networks in double precision.
func TestGoldenTokens(t *testing.T) {
	for _, file := range exactFiles(t) {
		c, g := newTextCase(t, file), texttest.Goldens(t, texttest.Network(file))
		in := c.in(t, c.maps(g["ixg.words"].Float64s()), rankParams("positive"))
		for _, substrate := range substratesOf(file) {
			p := defaults(substrate)
			p.Shares, p.Values = tenths, "positive"
			removed := stagetest.Run(t, Deletion, &DeletionParams{p}, in)
			kept := stagetest.Run(t, Insertion, &InsertionParams{p}, in)
			for what, curves := range map[string][][]byte{
				"comp": removed.Payloads["curves"], "suff": kept.Payloads["curves"],
			} {
				want, compared := g[what+"."+substrate].Float64s(), 0
				for i := range c.tokens {
					whole := rowOf(t, removed.Payloads["curves"][i], 0)[0]
					curve, changed := rowOf(t, curves[i], 0)[1:], rowOf(t, curves[i], 3)[1:]
					for k, w := range want[10*i : 10*i+10] {
						if math.IsNaN(w) != (changed[k] == 0) {
							t.Errorf("%s, %s.%s, text %d, share %v: %v tokens, golden %v", file, what,
								substrate, i, tenths[k], changed[k], w)
						}
						if math.IsNaN(w) || math.IsNaN(curve[k]) {
							continue
						}
						compared++
						if d := math.Abs(whole - curve[k] - w); !(d < 2e-5) {
							t.Errorf("%s, %s.%s, text %d, share %v: %v, want %v", file, what, substrate, i,
								tenths[k], whole-curve[k], w)
						}
					}
				}
				if compared < 20 {
					t.Errorf("%s, %s.%s: %d numbers compared", file, what, substrate, compared)
				}
			}
		}
	}
}

// TestGoldenLeaveOneOut compares the drops of single tokens.
func TestGoldenLeaveOneOut(t *testing.T) {
	for _, file := range exactFiles(t) {
		c, g := newTextCase(t, file), texttest.Goldens(t, texttest.Network(file))
		for _, substrate := range substratesOf(file) {
			p := subsetParams(func(p *SubsetParams) { p.Draw, p.Substrate = "single", substrate })
			r := stagetest.Run(t, Subset, p, map[string][]stages.Data{"model": {c.model}, "images": {c.texts},
				"targets": {c.targets}})
			at := 0
			for i, x := range c.tokens {
				u, height, width, err := metric.Numbered(r.Payloads["segments"][i])
				if err != nil || height != 1 || width != x.Len() {
					t.Fatalf("%s: units of %d×%d, %v", file, height, width, err)
				}
				responses := r.Payloads["responses"][i]
				probability, logit := rowOf(t, responses, 0), rowOf(t, responses, 1)
				for token, unit := range u.Of {
					want := g["loo."+substrate+".p"].Float64s()[at+token]
					if x.Special[token] != (unit < 0) || math.IsNaN(want) != x.Special[token] {
						t.Errorf("%s, text %d, token %d is of unit %d, golden %v", file, i, token, unit, want)
					}
					if unit < 0 || math.IsNaN(probability[1+unit]) {
						continue
					}
					if d := math.Abs(probability[0] - probability[1+unit] - want); !(d < 2e-5) {
						t.Errorf("%s, %s, text %d, token %d: %v, want %v", file, substrate, i, token,
							probability[0]-probability[1+unit], want)
					}
					want = g["loo."+substrate].Float64s()[at+token]
					if d := math.Abs(logit[0] - logit[1+unit] - want); !(d < 2e-4) {
						t.Errorf("%s, %s, text %d, token %d: logit %v, want %v", file, substrate, i, token,
							logit[0]-logit[1+unit], want)
					}
				}
				at += x.Len()
			}
		}
	}
}

// TestRemovedTokensAreATokenisersText checks that a text without some tokens has, to the last bit, the
// response of the text that a tokeniser makes of the others.
func TestRemovedTokensAreATokenisersText(t *testing.T) {
	files := []string{"bert.trace", "bag.own", "roberta.optimum", "fixed.own"}
	for _, file := range stagetest.Sample(t, 2, files) {
		c := newTextCase(t, file)
		p := defaults("removal")
		p.Steps = 4
		in := c.in(t, c.random(3), rankParams("magnitude"))
		curves := stagetest.Run(t, Deletion, &DeletionParams{p}, in).Payloads["curves"]
		for i, x := range c.tokens {
			payload, _ := in["maps"][0].Load(i)
			ranks, _ := stages.DecodeTensor(payload)
			for k, count := range rowOf(t, curves[i], 3) {
				short := x.Without(func(token int) bool { return float64(ranks.Uint32s()[token]) < count })
				if short.Len() == 0 {
					continue
				}
				target, _ := c.targets.Load(i)
				alone := stagetest.Run(t, Response, nil, map[string][]stages.Data{"model": {c.model},
					"images":  {stagetest.Items(nil, short.Tensor().Encode())},
					"targets": {stagetest.Items(nil, target)}}).Payloads["curves"][0]
				for row := range 3 {
					if got, want := rowOf(t, curves[i], row)[k], rowOf(t, alone, row)[0]; got != want {
						t.Errorf("%s, text %d without %v tokens: %v, and of the shorter text %v", file, i,
							count, got, want)
					}
				}
			}
		}
	}
}

// TestTextsAlone checks that a text's curve and subsets don't depend on the other texts, their order, or the
// batch.
func TestTextsAlone(t *testing.T) {
	c := newTextCase(t, "bert.trace")
	maps := c.random(5)
	all := c.in(t, maps, rankParams("signed"))
	for _, substrate := range []string{"mask", "pad", "removal"} {
		p := &AblationParams{Params: ablationDefaults(), Order: "lerf"}
		p.Substrate, p.Values = substrate, "signed"
		q := subsetParams(func(p *SubsetParams) {
			p.Draw, p.Samples, p.Substrate = "bernoulli", 9, substrate
		})
		curves := stagetest.Run(t, Ablation, p, all)
		subsets := stagetest.Run(t, Subset, q, map[string][]stages.Data{"model": all["model"],
			"images": all["images"], "targets": all["targets"]})
		for i := range c.tokens {
			one := map[string][]stages.Data{"model": all["model"]}
			for _, port := range []string{"images", "targets", "maps"} {
				one[port] = []stages.Data{only(t, all[port][0], i)}
			}
			alone := stagetest.Run(t, Ablation, p, one)
			if !bytes.Equal(alone.Payloads["curves"][0], curves.Payloads["curves"][i]) {
				t.Errorf("%s, text %d: another curve alone", substrate, i)
			}
			delete(one, "maps")
			alone = stagetest.Run(t, Subset, q, one)
			for port := range subsets.Payloads {
				if !bytes.Equal(alone.Payloads[port][0], subsets.Payloads[port][i]) {
					t.Errorf("%s, text %d: other %s alone", substrate, i, port)
				}
			}
		}
	}
}

// TestTokenLaws checks the ends of curves, that morf is the reverse of insertion from the other side, and
// that what replaces all tokens is the same in all orders.
func TestTokenLaws(t *testing.T) {
	c := newTextCase(t, "distilbert.trace")
	in := c.in(t, c.random(7), rankParams("signed"))
	for _, substrate := range []string{"mask", "pad", "removal"} {
		p := defaults(substrate)
		p.Values, p.Steps = "signed", 1
		ends := func(stage stages.Stage, params any) (from, to []float64) {
			for _, payload := range stagetest.Run(t, stage, params, in).Payloads["curves"] {
				curve := rowOf(t, payload, 0)
				from, to = append(from, curve[0]), append(to, curve[1])
			}
			return from, to
		}
		text, none := ends(Deletion, &DeletionParams{p})
		for _, order := range []string{"morf", "lerf", "random"} {
			from, to := ends(Ablation, &AblationParams{p, order})
			if !slices.Equal(from, text) || !slices.Equal(to, none) {
				t.Errorf("%s, %s: ends %v and %v, those of deletion %v and %v", substrate, order, from, to,
					text, none)
			}
		}
		if from, to := ends(Insertion, &InsertionParams{p}); !slices.Equal(from, none) ||
			!slices.Equal(to, text) {
			t.Errorf("%s: insertion from %v to %v", substrate, from, to)
		}
		// Keeping the most relevant k tokens is removing the least relevant n − k.
		p.Steps = 0
		for i, x := range c.tokens {
			n := metric.Tokens(x.Special).Count
			p.Shares = nil
			for k := 1; k <= n; k++ {
				p.Shares = append(p.Shares, float64(k)/float64(n))
			}
			one := map[string][]stages.Data{"model": in["model"]}
			for _, port := range []string{"images", "targets", "maps"} {
				one[port] = []stages.Data{only(t, in[port][0], i)}
			}
			curve := func(stage stages.Stage, params any) []float64 {
				return rowOf(t, stagetest.Run(t, stage, params, one).Payloads["curves"][0], 0)
			}
			kept, lerf := curve(Insertion, &InsertionParams{p}), curve(Ablation, &AblationParams{p, "lerf"})
			slices.Reverse(lerf)
			if !slices.Equal(kept, lerf) || len(kept) != n+1 {
				t.Errorf("%s, text %d: inserted %v, removed in the reverse order %v", substrate, i, kept,
					lerf)
			}
		}
	}
}

// TestSpecialTokensStay checks on the texts themselves that special tokens are neither replaced nor removed.
func TestSpecialTokensStay(t *testing.T) {
	x := modelfile.Tokenised{IDs: []int64{2, 10, 11, 3, 12, 3}, Types: []int64{0, 0, 0, 0, 1, 1},
		Special: []bool{true, false, false, true, false, true}}
	r := ranks{[]float32{metric.NoUnit, 2, 0, metric.NoUnit, 1, metric.NoUnit}, 3}
	for _, tt := range []struct {
		set        removed
		hidden     []int64
		rest, kind []int64
	}{
		{removed{false, 0}, x.IDs, x.IDs, x.Types},
		{removed{false, 1}, []int64{2, 10, 4, 3, 12, 3}, []int64{2, 10, 3, 12, 3}, []int64{0, 0, 0, 1, 1}},
		{removed{true, 1}, []int64{2, 4, 11, 3, 12, 3}, []int64{2, 11, 3, 12, 3}, []int64{0, 0, 0, 1, 1}},
		{removed{true, 2}, []int64{2, 4, 11, 3, 4, 3}, []int64{2, 11, 3, 3}, []int64{0, 0, 0, 1}},
		{removed{false, 3}, []int64{2, 4, 4, 3, 4, 3}, []int64{2, 3, 3}, []int64{0, 0, 1}},
	} {
		gone := r.gone(tt.set, x)
		got := x.Replaced(gone, 4)
		if !slices.Equal(got.IDs, tt.hidden) || !slices.Equal(got.Types, x.Types) {
			t.Errorf("%v: %v of types %v", tt.set, got.IDs, got.Types)
		}
		if got := x.Without(gone); !slices.Equal(got.IDs, tt.rest) || !slices.Equal(got.Types, tt.kind) {
			t.Errorf("%v: removed to %v of types %v", tt.set, got.IDs, got.Types)
		}
	}
	if !slices.Equal(x.IDs, []int64{2, 10, 11, 3, 12, 3}) {
		t.Errorf("the text itself has become %v", x.IDs)
	}
}

// TestUndefinedTexts checks texts without units, of one token, and maps without an order.
func TestUndefinedTexts(t *testing.T) {
	c := newTextCase(t, "bert.trace")
	special := func(ids ...int64) (x modelfile.Tokenised) {
		return modelfile.Tokenised{IDs: ids, Types: make([]int64, len(ids)), Special: make([]bool, len(ids))}
	}
	two := func() modelfile.Tokenised { return special(2, 50, 51, 3) }
	texts := []modelfile.Tokenised{special(2, 3), special(2, 50, 3), two(), two(), two()}
	for _, x := range texts {
		x.Special[0], x.Special[x.Len()-1] = true, true
	}
	nan := math.NaN()
	values := [][]float64{{1, 2}, {5, 0.5, 7}, {nan, 1, 2, nan}, {8, 1, 1, 9}, {0, nan, 1, 0}}
	var payloads, payloadsOfMaps, targets [][]byte
	for i, x := range texts {
		payloads = append(payloads, x.Tensor().Encode())
		payloadsOfMaps = append(payloadsOfMaps, stages.NewTensor(values[i], 1, x.Len()).Encode())
		targets = append(targets, stages.NewTensor([]int64{0}, 1).Encode())
	}
	c.texts = stagetest.Items(stages.Facts{"pad": "0", "mask": "4"}, payloads...)
	c.targets = stagetest.Items(nil, targets...)
	for _, substrate := range []string{"mask", "removal"} {
		r := stagetest.Run(t, Deletion, &DeletionParams{defaults(substrate)},
			c.in(t, payloadsOfMaps, rankParams("magnitude")))
		for i, want := range []bool{false, true, true, false, false} {
			curve := rowOf(t, r.Payloads["curves"][i], 0)
			if len(curve) != textSteps+1 {
				t.Fatalf("%d points", len(curve))
			}
			for _, v := range curve {
				if math.IsNaN(v) == want {
					t.Errorf("%s, text %d: curve %v, defined %t", substrate, i, curve, want)
					break
				}
			}
		}
		for _, draw := range []string{"fixed", "bernoulli", "shapley", "single", "permutation"} {
			q := subsetParams(func(p *SubsetParams) {
				p.Draw, p.Samples, p.Substrate, p.Sizes, p.Shares = draw, 4, substrate, nil, []float64{0.5}
			})
			r := stagetest.Run(t, Subset, q, map[string][]stages.Data{"model": {c.model}, "images": {c.texts},
				"targets": {c.targets}})
			for i, x := range texts {
				u, _, _, err := metric.Numbered(r.Payloads["segments"][i])
				if err != nil {
					t.Fatal(err)
				}
				s, err := metric.DecodeSubsets(r.Payloads["subsets"][i], u.Count)
				responses := rowOf(t, r.Payloads["responses"][i], 0)
				if err != nil || u.Count != x.Len()-2 || len(responses) != s.Count+2 {
					t.Errorf("%s, text %d: %d units and %d subsets, %v", draw, i, u.Count, s.Count, err)
				}
			}
		}
	}
}

// TestNoSpecialTokens checks that a text of which removal leaves nothing is undefined there, with a warning.
func TestNoSpecialTokens(t *testing.T) {
	c := newTextCase(t, "bytes.own")
	r := stagetest.Run(t, Deletion, &DeletionParams{defaults("removal")},
		c.in(t, c.random(1), rankParams("magnitude")))
	for i := range c.tokens {
		curve := rowOf(t, r.Payloads["curves"][i], 0)
		for k, v := range curve {
			if math.IsNaN(v) != (k == len(curve)-1) {
				t.Errorf("text %d, point %d: %v", i, k, v)
			}
		}
	}
	if len(r.Warnings) != len(c.tokens) || !strings.Contains(r.Warnings[0], "removal leaves none") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// TestTextParametersAreChecked checks that what texts or images don't have is refused, in a sentence that
// names what to write.
func TestTextParametersAreChecked(t *testing.T) {
	for _, tt := range []struct {
		texts  bool
		change func(*Params)
		d      direction
		want   string
	}{
		{true, func(*Params) {}, deletion, ""},
		{true, func(p *Params) { p.Substrate = "blur" }, deletion, "have no values in between"},
		{true, func(p *Params) { p.Substrate = "images" }, deletion, "have no values in between"},
		{true, func(p *Params) { p.Unit = "region" }, deletion, "the units of a text are its tokens"},
		{true, func(p *Params) { p.Step = 2 }, deletion, "give steps or shares"},
		{true, func(p *Params) { p.Limit = 2 }, deletion, "give shares"},
		{true, func(p *Params) { p.Values = "positive" }, insertion, ""},
		{true, func(p *Params) { p.Values = "positive" }, lerf, "no place"},
		{false, func(*Params) {}, deletion, "images have pixels"},
		{false, func(p *Params) { p.Substrate = "removal" }, deletion, "images have pixels"},
		{false, func(p *Params) { p.Substrate, p.Values = "zero", "positive" }, deletion, "have pixels"},
		{false, func(p *Params) { p.Substrate = "zero" }, deletion, ""},
	} {
		p := defaults("mask")
		tt.change(&p)
		err := p.checkCurve(tt.d, func(port string) bool { return port == stages.TextsName && tt.texts })
		if good := tt.want == ""; good != (err == nil) || !good && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("texts %t, %+v: %v, want %q", tt.texts, p, err, tt.want)
		}
	}
}

// TestHintsOfUnits checks that a substrate and a unit that are both of images are told of together.
func TestHintsOfUnits(t *testing.T) {
	for unit, want := range map[string]string{"region": "write substrate: mask, unit: pixel; ",
		"pixel": "write substrate: mask, or "} {
		var bad *stages.FieldError
		err := checkUnits("zero", unit, true)
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Hint, want) {
			t.Errorf("%s: %v, %+v", unit, err, bad)
		}
	}
}

// TestTokenPoints checks that a share of the tokens is rounded down, where the product of floats is below a
// whole number, too.
func TestTokenPoints(t *testing.T) {
	p := Params{Shares: tenths}
	for n := range 600 {
		for k, got := range p.tokenPoints(n)[1:] {
			if want := (k + 1) * n / 10; got != want {
				t.Errorf("%v of %d tokens: %d, want %d", tenths[k], n, got, want)
			}
		}
	}
	if got := (Params{}).tokenPoints(20); fmt.Sprint(got) != "[0 2 4 6 8 10 12 14 16 18 20]" {
		t.Errorf("points of 20 tokens: %v", got)
	}
}

// Texts are refused in a precision that rounds the ids of their tokens.
func TestTextsInBFloat16(t *testing.T) {
	if err := modeltest.Runtime(t).Has(stages.Device{Class: "cpu", Precision: stages.BFloat16}); err != nil {
		stagetest.LacksDevice(t, err)
	}
	c := newTextCase(t, "bert.trace")
	p := Deletion.NewParams().(*DeletionParams)
	p.Substrate, p.Precision = "mask", stages.BFloat16
	_, err := stagetest.Try(Deletion, p, c.in(t, c.random(3), rankParams("magnitude")))
	if err == nil || !strings.Contains(err.Error(), "cpu rounds the ids of tokens in bfloat16") {
		t.Errorf("got %v", err)
	}
}
