package perturb

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestIndependentClasses checks that with independent logits, as of nets for PASCAL VOC, the probability of a
// class is its sigmoid, along a curve and for the label that model/predict takes as target.
func TestIndependentClasses(t *testing.T) {
	net := modeltest.Model(t, model.ONNXParams{Kind: "sigmoid-logits",
		Path: filepath.Join(golden.Dir(t), "models", "smallcnn.onnx")})
	image, ranks := make([]byte, 3*32*32), make([]uint32, 32*32)
	for i := range image {
		image[i] = byte(i * i)
	}
	for i := range ranks {
		ranks[i] = uint32(i * 7919 % 1024)
	}
	in := map[string][]stages.Data{
		"model":  {net},
		"images": {stagetest.Items(nil, stages.NewTensor(image, 3, 32, 32).Encode())},
		"labels": {stagetest.Items(nil, stages.NewTensor([]int64{4}, 1).Encode())},
	}
	r := stagetest.Run(t, model.Predict, &model.PredictParams{Target: "label"}, in)
	predicted, err := stages.ScalarOf(r.Payloads["probability"][0])
	if err != nil {
		t.Fatal(err)
	}
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.NewTensor(ranks, 32, 32).Encode())}
	in["targets"] = []stages.Data{stagetest.Items(nil, r.Payloads["targets"]...)}
	curve, err := stages.DecodeTensor(stagetest.Run(t, Ablation, nil, in).Payloads["curves"][0])
	if err != nil {
		t.Fatal(err)
	}
	v, n := curve.Float64s(), curve.Shape[1]
	if math.Abs(v[0]-predicted) > 1e-6 {
		t.Errorf("the curve begins at %v, and the label's probability is %v", v[0], predicted)
	}
	for i := range n {
		if want := 1 / (1 + math.Exp(-v[n+i])); math.Abs(v[i]-want) > 1e-6 {
			t.Errorf("point %d: the probability is %v, and the logit's sigmoid %v", i, v[i], want)
		}
	}
	if v[0] == v[n-1] {
		t.Error("the curve is flat")
	}
}
