package attribute

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A targetCase is a line of testdata/targets/values.json.
type targetCase struct {
	Net        int     `json:"net"`
	Expression string  `json:"expression"`
	Value      float64 `json:"value"`
}

// targetTolerance is that of gradients of expressions, relative to the largest element: the nets are of
// float32, and the reference is of float64.
const targetTolerance = 2e-5

// explained returns the inputs of a stage that explains an expression of one of testdata/targets, whose image
// and other image are given.
func explained(t *testing.T, base stages.Data, text string, pixels stages.Tensor) map[string][]stages.Data {
	t.Helper()
	p := model.TargetParams{Target: text}
	if strings.Contains(text, "vectors") {
		p.Vectors = "testdata/targets/vectors.npy"
	}
	n := len(pixels.Raw) / 2
	image := func(b []byte) stages.Data {
		return stagetest.Items(nil, stages.NewTensor(b, 3, 8, 8).Encode())
	}
	in := map[string][]stages.Data{"model": {modeltest.Explaining(t, base, p)},
		"images": {image(pixels.Raw[:n])}, "other": {image(pixels.Raw[n:])}}
	r := stagetest.Run(t, model.Predict, nil, in)
	in["targets"] = []stages.Data{stagetest.Items(nil, r.Payloads["targets"][0])}
	in["value"] = []stages.Data{stagetest.Items(nil, r.Payloads["probability"][0])}
	delete(in, "other")
	return in
}

// TestTargets holds the values and the gradients of 12 expressions on 20 random nets against PyTorch in
// double precision: testdata/targets.py.
func TestTargets(t *testing.T) {
	modeltest.Runtime(t)
	b, err := os.ReadFile("testdata/targets/values.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []targetCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	arrays, err := stagetest.Arrays("testdata/targets/gradients.npz")
	if err != nil {
		t.Fatal(err)
	}
	nets := map[int]stages.Data{}
	worst := 0.0
	for k, tt := range cases {
		if _, ok := nets[tt.Net]; !ok {
			nets[tt.Net] = modeltest.Model(t, model.ONNXParams{Preset: "unit", Kind: "none",
				Path: filepath.Join("testdata", "targets", fmt.Sprintf("net%02d.onnx", tt.Net))})
		}
		pixels, err := arrays[fmt.Sprintf("pixels%02d", tt.Net)].Tensor()
		if err != nil {
			t.Fatal(err)
		}
		in := explained(t, nets[tt.Net], tt.Expression, pixels)
		value, err := stages.ScalarOf(payload(t, in["value"][0], 0))
		if err != nil || !(math.Abs(value-tt.Value) <= 1e-5*max(1, math.Abs(tt.Value))) {
			t.Errorf("net %d, %s: the value is %v, want %v (%v)", tt.Net, tt.Expression, value, tt.Value, err)
		}
		delete(in, "value")
		want := arrays[fmt.Sprintf("gradient%02d_%02d", tt.Net, k%12)].Float64s()
		got := mapsOf(t, Saliency, &SaliencyParams{plain(unreduced()), false}, in)[0]
		largest, off := 0.0, 0.0
		for i, v := range want {
			largest, off = max(largest, math.Abs(v)), max(off, math.Abs(v-got[i]))
		}
		if largest > 0 {
			worst = max(worst, off/largest)
		}
		if !(off <= targetTolerance*largest) {
			t.Errorf("net %d, %s: the gradient is off by %v of %v", tt.Net, tt.Expression, off, largest)
		}
	}
	t.Logf("%d gradients, off by %.2g at most", len(cases), worst)
	if len(cases) != 240 {
		t.Errorf("%d cases", len(cases))
	}
}
