package model_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// textsOf returns the texts of a network in its tokens.
func textsOf(t *testing.T, network string) stages.Data {
	t.Helper()
	var payloads [][]byte
	for _, x := range texttest.Texts(t, network) {
		rows := append(append(append([]int64{}, x.IDs...), x.Types...), x.Special...)
		payloads = append(payloads, stages.NewTensor(rows, 3, len(x.IDs)).Encode())
	}
	return stagetest.Items(stages.Facts{"pad": "0", "mask": "4"}, payloads...)
}

// rewritten returns a model that a stage made of another one.
func rewritten(t *testing.T, s stages.Stage, params any, m stages.Data) stages.Data {
	t.Helper()
	r := stagetest.Run(t, s, params, map[string][]stages.Data{"model": {m}})
	out := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
	out.Base = &m
	return out
}

// gradients returns the maps of input × gradient at the embedding, of class 0.
func gradients(t *testing.T, m, texts stages.Data) (out [][]float64) {
	t.Helper()
	var targets [][]byte
	for range texts.Items.Len() {
		targets = append(targets, stages.NewTensor([]int64{0}, 1).Encode())
	}
	r := stagetest.Run(t, attribute.InputXGradient, nil, map[string][]stages.Data{"model": {m},
		"images": {texts}, "targets": {stagetest.Items(nil, targets...)}})
	for _, b := range r.Payloads["maps"] {
		x, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x.Float64s())
	}
	return out
}

// apart returns the largest difference of maps, in shares of the largest value.
func apart(a, b [][]float64) float64 {
	most, largest := 0.0, 0.0
	for i := range a {
		for k := range a[i] {
			most = math.Max(most, math.Abs(a[i][k]-b[i][k]))
			largest = math.Max(largest, math.Abs(a[i][k]))
		}
	}
	return most / largest
}

// TestNoiseOfTexts checks that noise of size 0 changes nothing, that maps move with its size, and that draws
// differ, on texts of several lengths.
func TestNoiseOfTexts(t *testing.T) {
	for _, file := range []string{"bert.trace", "roberta.optimum", "bag.own"} {
		m := modeltest.Model(t, model.ONNXParams{Path: texttest.Path(t, file)})
		texts := textsOf(t, texttest.Network(file))
		noisy := func(draw string, scale float64) [][]float64 {
			p := model.Noise.NewParams().(*model.NoiseParams)
			p.Draw, p.Scale = draw, scale
			return gradients(t, rewritten(t, model.Noise, p, m), texts)
		}
		plain := gradients(t, m, texts)
		none, little, much, other := noisy("a", 0), noisy("a", 1e-3), noisy("a", 1e-1), noisy("b", 1e-1)
		if d := apart(plain, none); !(d < 1e-5) {
			t.Errorf("%s: noise of size 0 moves maps by %v", file, d)
		}
		near, far := apart(plain, little), apart(plain, much)
		if !(0 < near && near < far/10) || apart(much, other) < far/10 {
			t.Errorf("%s: maps move by %v and %v, those of two draws are %v apart", file, near, far,
				apart(much, other))
		}
	}
}

// TestNoiseNeedsTexts checks that a model of images is refused.
func TestNoiseNeedsTexts(t *testing.T) {
	m := modeltest.Official(t, "smallcnn", 0)
	if _, err := stagetest.Try(model.Noise, model.Noise.NewParams(),
		map[string][]stages.Data{"model": {m}}); err == nil {
		t.Error("a model of images gets noise")
	}
}

// TestTextsHaveNoPixels checks that what cuts images into cells, or shifts their values, refuses models of
// texts.
func TestTextsHaveNoPixels(t *testing.T) {
	for _, file := range []string{"bert.trace", "bag.own", "bytes.own"} {
		m := modeltest.Model(t, model.ONNXParams{Path: texttest.Path(t, file)})
		for _, s := range []stages.Stage{model.Shift, model.GridPG, model.DiFull, model.DiPart} {
			_, err := stagetest.Try(s, s.NewParams(), map[string][]stages.Data{"model": {m}})
			if err == nil || !strings.Contains(err.Error(), "the model takes texts") {
				t.Errorf("%s: %s: %v", file, s.Name, err)
			}
		}
	}
}

// TestRandomisedTexts checks that models of texts are randomised: none of the layers of share 0, and all of
// them, but not the words' embeddings, of share 1.
func TestRandomisedTexts(t *testing.T) {
	for _, file := range []string{"bert.dynamo", "distilbert.optimum", "fixed.own"} {
		m := modeltest.Model(t, model.ONNXParams{Path: texttest.Path(t, file)})
		texts := textsOf(t, texttest.Network(file))
		answers := func(share float64) []byte {
			p := model.Randomise.NewParams().(*model.RandomiseParams)
			p.Share = share
			r := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
				"model": {rewritten(t, model.Randomise, p, m)}, "images": {texts}})
			return bytes.Join(r.Payloads["probability"], nil)
		}
		if none, half, all := answers(0), answers(0.5), answers(1); bytes.Equal(none, half) ||
			bytes.Equal(half, all) {
			t.Errorf("%s: random weights change no answer", file)
		}
	}
}
