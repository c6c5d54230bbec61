package score

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// explainedInput returns an official net under a preset with two images, their targets and the responses to
// them.
func explainedInput(t *testing.T, preset string) map[string][]stages.Data {
	t.Helper()
	m := modeltest.Model(t, model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"),
		Preset: preset})
	x := golden.Arrays(t, filepath.Join(golden.Dir(t), "models", "smallcnn_io.npz"))["x"].Float32s()
	const n = 3 * 32 * 32
	var images, targets [][]byte
	for i := range 2 {
		images = append(images, stages.NewTensor(x[i*n:(i+1)*n], 3, 32, 32).Encode())
		targets = append(targets, stages.NewTensor([]int64{int64(7 + i)}, 1).Encode())
	}
	in := map[string][]stages.Data{"model": {m}, "images": {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, targets...)}}
	r := stagetest.Run(t, perturb.Response, nil, in)
	in["whole"] = []stages.Data{stagetest.Items(r.Facts["curves"], r.Payloads["curves"]...)}
	return in
}

// on returns inputs with others in the place of some.
func on(in map[string][]stages.Data, more map[string]stages.Data) map[string][]stages.Data {
	out := map[string][]stages.Data{}
	for port, d := range in {
		out[port] = d
	}
	for port, d := range more {
		out[port] = []stages.Data{d}
	}
	return out
}

// responseTo returns a response to the two images: its place in the curve.
func responseTo(t *testing.T, r stagetest.Result, i, response int) float64 {
	t.Helper()
	c, err := stages.DecodeTensor(r.Payloads["curves"][i])
	if err != nil {
		t.Fatal(err)
	}
	return c.Float64s()[response]
}

// completenessOf returns parameters for explained classes on the port targets.
func completenessOf(reference, output string) *CompletenessParams {
	return &CompletenessParams{reference, output, stages.AsDeclared}
}

// TestCompleteness checks the error by hand: maps whose sum is the difference, half of it and nothing, with
// one channel and three, from each reference, and an image that is its own reference.
func TestCompleteness(t *testing.T) {
	in := explainedInput(t, "imagenet")
	black := stages.NewTensor(make([]float32, 3*32*32), 3, 32, 32).Encode()
	for reference, other := range map[string][]byte{"black": black, "images": black} {
		base := stagetest.Run(t, perturb.Response, nil, on(in, map[string]stages.Data{
			"images": stagetest.Items(nil, other, other)}))
		whole := stagetest.Run(t, perturb.Response, nil, in)
		for k, output := range []string{"probability", "logit"} {
			difference := func(i int) float64 {
				return responseTo(t, whole, i, k) - responseTo(t, base, i, k)
			}
			half := make([]float64, 3*32*32)
			for c := range 3 {
				half[1024*c+5] = difference(1) / 6
			}
			more := map[string]stages.Data{"maps": stagetest.Items(nil,
				stages.NewTensor([]float64{difference(0) + 1, -1}, 1, 2).Encode(),
				stages.NewTensor(half, 3, 32, 32).Encode())}
			if reference == "images" {
				more["baselines"] = stagetest.Items(nil, other, other)
			}
			r := stagetest.Run(t, Completeness, completenessOf(reference, output), on(in, more))
			check(t, r, "scores", 1e-6, 0, 0.5)
		}
	}
	images, err := in["images"][0].Load(0)
	if err != nil {
		t.Fatal(err)
	}
	same := stagetest.Items(nil, images, black)
	r := stagetest.Run(t, Completeness, completenessOf("images", "logit"), on(in, map[string]stages.Data{
		"baselines": same, "maps": stagetest.Items(nil, pixels(0, 0), pixels(0, 0))}))
	check(t, r, "scores", 1e-12, nan, 1)
	r = stagetest.Run(t, Completeness, completenessOf("black", "logit"), on(in, map[string]stages.Data{
		"maps": stagetest.Items(nil, pixels(1, float32(nan)), pixels(1, float32(math.Inf(1))))}))
	check(t, r, "scores", 0, nan, nan)
	fails(t, Completeness, nil, on(in, map[string]stages.Data{"maps": same}), "reference is declared")
}

// TestCompletenessOfMethods checks the laws: methods that are complete by theory have no error to speak of,
// from the reference that they declare, and input times gradient on a net with biases has one.
func TestCompletenessOfMethods(t *testing.T) {
	in := explainedInput(t, "imagenet")
	for _, m := range []struct {
		of       stages.Stage
		complete bool
	}{{attribute.IntegratedGradients, true}, {attribute.DeepLIFT, true}, {attribute.InputXGradient, false}} {
		p := m.of.NewParams()
		maps := stagetest.Run(t, m.of, p, in)
		d := m.of.Declares(p, map[string]stages.Declared{"images": nil})
		r := stagetest.Run(t, Completeness, completenessOf(d["reference"], d["output"]),
			on(in, map[string]stages.Data{"maps": stagetest.Items(nil, maps.Payloads["maps"]...)}))
		for i, x := range scalars(t, stagetest.Items(nil, r.Payloads["scores"]...)) {
			if m.complete != (x < 5e-3) {
				t.Errorf("%s: the error on image %d is %v", m.of.Name, i, x)
			}
		}
	}
}

// TestInputInvariance checks the law on a net with means and scales of its own: gradients stay when image and
// model are shifted alike, input times gradient doesn't, and the shifted model's outputs are the model's.
func TestInputInvariance(t *testing.T) {
	in := explainedInput(t, "imagenet")
	for _, by := range []float64{-1, 0.25} {
		r := stagetest.Run(t, model.Shift, &model.ShiftParams{By: by},
			map[string][]stages.Data{"model": in["model"]})
		shifted := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
		shifted.Base = &in["model"][0]
		moved := stagetest.Run(t, perturb.Shift, &perturb.ShiftParams{By: by}, in)
		other := on(in, map[string]stages.Data{"model": shifted,
			"images": stagetest.Items(nil, moved.Payloads["images"]...)})
		before := stagetest.Run(t, perturb.Response, nil, in)
		after := stagetest.Run(t, perturb.Response, nil, other)
		for i := range 2 {
			if a, b := responseTo(t, before, i, 1), responseTo(t, after, i, 1); !(math.Abs(a-b) <= 1e-4) {
				t.Errorf("shifted by %v: the logit of image %d is %v, and was %v", by, i, b, a)
			}
		}
		for _, m := range []struct {
			of        stages.Stage
			invariant float64
		}{{attribute.Saliency, 1}, {attribute.InputXGradient, 0}, {attribute.IntegratedGradients, 0}} {
			maps, again := stagetest.Run(t, m.of, nil, in), stagetest.Run(t, m.of, nil, other)
			r := stagetest.Run(t, InputInvariance, nil, map[string][]stages.Data{
				"maps":    {stagetest.Items(nil, maps.Payloads["maps"]...)},
				"shifted": {stagetest.Items(nil, again.Payloads["maps"]...)}})
			check(t, r, "invariant", 0, m.invariant, m.invariant)
			for i, change := range scalars(t, stagetest.Items(nil, r.Payloads["change"]...)) {
				if (change < 1e-4) != (m.invariant == 1) {
					t.Errorf("%s, shifted by %v: the map of image %d changes by %v", m.of.Name, by, i, change)
				}
			}
		}
	}
}

// TestInputInvarianceByHand checks the numbers of two maps.
func TestInputInvarianceByHand(t *testing.T) {
	r := stagetest.Run(t, InputInvariance, nil, map[string][]stages.Data{
		"maps": {stagetest.Items(nil, pixels(3, 4), pixels(3, 4), pixels(0, 0), pixels(1, 2), pixels(3, 4))},
		"shifted": {stagetest.Items(nil, pixels(3, 4), pixels(0, 0), pixels(1, 1),
			pixels(1, float32(math.NaN())), pixels(3, 4.0005))},
	})
	check(t, r, "change", 1e-6, 0, 1, nan, nan, 1e-4)
	check(t, r, "invariant", 0, 1, 0, nan, nan, 0)
	r = stagetest.Run(t, InputInvariance, &InputInvarianceParams{Within: 0.1}, map[string][]stages.Data{
		"maps":    {stagetest.Items(nil, pixels(3, 4))},
		"shifted": {stagetest.Items(nil, pixels(3.375, 4))}})
	check(t, r, "invariant", 0, 1)
	inf := float32(math.Inf(1))
	r = stagetest.Run(t, InputInvariance, nil, map[string][]stages.Data{
		"maps":    {stagetest.Items(nil, pixels(3, inf), pixels(3, 4))},
		"shifted": {stagetest.Items(nil, pixels(1, 1), pixels(3, -inf))}})
	check(t, r, "change", 0, nan, nan)
	check(t, r, "invariant", 0, nan, nan)
}
