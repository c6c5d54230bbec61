package attribute_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestClassAsExpression holds that the map of an expression that is a class's logit is the class's map, for
// every method that doesn't compare the class with others; those that do refuse it. What a backward pass
// starts with is a constant for such an expression, so that ONNX Runtime folds the last layer: the last bits
// differ.
func TestClassAsExpression(t *testing.T) {
	modeltest.Runtime(t)
	compare := []string{"attribute/agi", "attribute/clrp", "attribute/crap"}
	for _, net := range []string{"smallcnn", "timm_vit_op17"} {
		base := modeltest.Official(t, net, 32)
		pixels := make([]float32, 3*32*32)
		for i := range pixels {
			pixels[i] = float32(0.5 + 0.4*math.Sin(float64(i*i%977)))
		}
		image := stagetest.Items(nil, stages.NewTensor(pixels, 3, 32, 32).Encode())
		class := map[string][]stages.Data{"model": {base}, "images": {image},
			"targets": {stagetest.Items(nil, stages.NewTensor([]int64{3}, 1).Encode())}}
		expression := map[string][]stages.Data{"images": {image},
			"model": {modeltest.Explaining(t, base, model.TargetParams{Target: "output[3]"})}}
		r := stagetest.Run(t, model.Predict, nil, expression)
		expression["targets"] = []stages.Data{stagetest.Items(nil, r.Payloads["targets"][0])}
		same := 0
		for _, s := range registry.Builtin().Family("attribute") {
			params := s.NewParams()
			if !explainsLogit(params) || s.Input("subsets") != nil {
				continue
			}
			if s.Name == "attribute/abslrp" {
				setText(params, "contrast", "none") // an expression has no other classes
			}
			want, err := stagetest.Try(*s, params, class)
			if err != nil || len(want.Payloads["maps"]) == 0 {
				continue // the method doesn't fit the net
			}
			got, err := stagetest.Try(*s, params, expression)
			switch {
			case slices.Contains(compare, s.Name):
				if err == nil || !strings.Contains(err.Error(), "expression") {
					t.Errorf("%s of %s compares an expression with other classes: %v", s.Name, net, err)
				}
			case err != nil:
				t.Errorf("%s of %s: %v", s.Name, net, err)
			case s.Name == "attribute/xrai": // gains of its regions that are nearly equal are compared
			case !(apart(t, got.Payloads["maps"][0], want.Payloads["maps"][0]) <= 1e-5):
				t.Errorf("%s of %s: the map of output[3] isn't that of class 3, but %.2g apart", s.Name, net,
					apart(t, got.Payloads["maps"][0], want.Payloads["maps"][0]))
			default:
				same++
			}
		}
		t.Logf("%s: %d methods", net, same)
		if same < 25 {
			t.Errorf("%s: %d methods", net, same)
		}
	}
}

// TestLargestTarget holds that gradients of a similarity to the image itself come with a warning, as the map
// is nothing but rounding, and that those of a logit don't.
func TestLargestTarget(t *testing.T) {
	modeltest.Runtime(t)
	base := modeltest.Official(t, "smallcnn", 32)
	pixels := make([]float32, 3*32*32)
	for i := range pixels {
		pixels[i] = float32(0.5 + 0.4*math.Sin(float64(i*i%977)))
	}
	image := stagetest.Items(nil, stages.NewTensor(pixels, 3, 32, 32).Encode())
	for text, want := range map[string]bool{"cosine(output, frozen(output))": true, "output[3]": false,
		"cosine(output, frozen(output * output))": false} {
		in := map[string][]stages.Data{"images": {image},
			"model": {modeltest.Explaining(t, base, model.TargetParams{Target: text})}}
		r := stagetest.Run(t, model.Predict, nil, in)
		in["targets"] = []stages.Data{stagetest.Items(nil, r.Payloads["targets"][0])}
		for _, name := range []string{"attribute/saliency", "attribute/grad-cam"} {
			s, _ := registry.Builtin().Lookup(name)
			params := s.NewParams()
			explainsLogit(params)
			got, err := stagetest.Try(*s, params, in)
			if err != nil {
				t.Fatal(err)
			}
			warned := strings.Contains(strings.Join(got.Warnings, " "), "largest value")
			if warned != want {
				t.Errorf("%s of %s: warned is %t: %q", name, text, warned, got.Warnings)
			}
		}
	}
}

// TestAboutClasses holds that stages which read classes by themselves refuse a model whose answer is an
// expression.
func TestAboutClasses(t *testing.T) {
	modeltest.Runtime(t)
	base := modeltest.Official(t, "smallcnn", 32)
	image := stagetest.Items(nil, stages.NewTensor(make([]float32, 3*32*32), 3, 32, 32).Encode())
	in := map[string][]stages.Data{"images": {image}, "other": {image},
		"model":   {modeltest.Explaining(t, base, model.TargetParams{Target: "output[3]"})},
		"targets": {stagetest.Items(nil, stages.NewTensor([]float32{}, 0).Encode())}}
	for _, s := range []stages.Stage{model.Change, model.RandomClass} {
		_, err := stagetest.Try(s, nil, in)
		if err == nil || !strings.Contains(err.Error(), "about classes") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// apart returns the largest difference of two maps, as a share of the largest magnitude.
func apart(t *testing.T, a, b []byte) float64 {
	t.Helper()
	x, err := stages.DecodeTensor(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := stages.DecodeTensor(b)
	if err != nil {
		t.Fatal(err)
	}
	off, largest := 0.0, 0.0
	for i, v := range x.Float64s() {
		w := y.Float64s()[i]
		off, largest = max(off, math.Abs(v-w)), max(largest, math.Abs(w))
	}
	return off / largest
}

// explainsLogit has a method explain the logit, and reports whether it explains any output.
func explainsLogit(params any) bool { return setText(params, "output", "logit") }

// setText sets a parameter, and reports whether there is one of that name.
func setText(params any, name, value string) bool {
	for _, f := range stages.Fields(params) {
		if f.Name == name {
			reflect.ValueOf(params).Elem().FieldByIndex(f.Index).SetString(value)
			return true
		}
	}
	return false
}
