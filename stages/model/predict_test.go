package model_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestPredictTargets checks that the ranks of an image give every class once, with falling probabilities, and
// checks their differences.
func TestPredictTargets(t *testing.T) {
	net := modeltest.Model(t, model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models", "smallcnn.onnx")})
	image := make([]byte, 3*32*32)
	for i := range image {
		image[i] = byte(i * i)
	}
	ask := func(target string) (classes []int64, probability float64) {
		t.Helper()
		r := stagetest.Run(t, model.Predict, &model.PredictParams{Target: target}, map[string][]stages.Data{
			"model":  {net},
			"images": {stagetest.Items(nil, stages.NewTensor(image, 3, 32, 32).Encode())},
			"labels": {stagetest.Items(nil, stages.NewTensor([]int64{4}, 1).Encode())},
		})
		c, err := stages.DecodeTensor(r.Payloads["targets"][0])
		if err != nil {
			t.Fatal(err)
		}
		p, err := stages.ScalarOf(r.Payloads["probability"][0])
		if err != nil {
			t.Fatal(err)
		}
		return c.Int64s(), p
	}
	var order []int64
	last, total := 1.0, 0.0
	for _, rank := range []string{"predicted", "predicted:2", "predicted:3", "predicted:4", "predicted:5",
		"predicted:6", "predicted:7", "predicted:8", "predicted:9", "predicted:10"} {
		c, p := ask(rank)
		if len(c) != 1 || slices.Contains(order, c[0]) || p > last {
			t.Errorf("%s: classes %v with %v after %v with %v", rank, c, p, order, last)
		}
		order, last, total = append(order, c...), p, total+p
	}
	if total < 1-1e-12 || total > 1+1e-12 {
		t.Errorf("the probabilities of all ranks sum to %v", total)
	}
	if c, _ := ask("label"); !slices.Equal(c, []int64{4}) {
		t.Errorf("label: %v", c)
	}
	_, first := ask("predicted")
	_, second := ask("predicted:2")
	if c, p := ask("predicted-predicted:2"); !slices.Equal(c, order[:2]) || p != first-second {
		t.Errorf("the margin is %v of classes %v, want %v of %v", p, c, first-second, order[:2])
	}
}

func TestPredictRefuses(t *testing.T) {
	if (model.PredictParams{Target: "predicted:best"}).Validate() == nil {
		t.Error(`the target "predicted:best" was accepted`)
	}
	nothing := func(string) bool { return false }
	if err := model.Predict.Check(&model.PredictParams{Target: "label"}, nothing); err == nil {
		t.Error("labels may be missing")
	}
	net := modeltest.Model(t, model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models", "smallcnn.onnx")})
	in := map[string][]stages.Data{
		"model":  {net},
		"images": {stagetest.Items(nil, stages.NewTensor(make([]byte, 3*32*32), 3, 32, 32).Encode())},
	}
	for target, want := range map[string]string{
		"label":        `item "item-0": target is label, but port labels has no item`,
		"10":           "target: class 10 is not one of the model's 10, which are 0 to 9",
		"predicted:11": "the model has 10 classes",
	} {
		if _, err := stagetest.Try(model.Predict, &model.PredictParams{Target: target}, in); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", target, err, want)
		}
	}
}
