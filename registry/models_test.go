package registry

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestUnfit holds that methods are refused for the models that they don't fit, with
// the parameters they have, and for no others.
func TestUnfit(t *testing.T) {
	if _, err := OpenRuntime(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	at := func(path string) *model.ONNXParams {
		p := model.ONNX.NewParams().(*model.ONNXParams)
		p.Path = path
		return p
	}
	inner := attribute.LRPEpsilon.NewParams().(*attribute.LRPEpsilonParams)
	inner.Layer = "middle"
	nowhere := attribute.LRPEpsilon.NewParams().(*attribute.LRPEpsilonParams)
	nowhere.Layer = "nowhere"
	halved := attribute.LRPEpsilon.NewParams().(*attribute.LRPEpsilonParams)
	halved.Gates = "halved"
	var m Models
	for _, tt := range []struct {
		net, method string
		params      any
		want        string
	}{
		{"vgg", "tibav", nil, "no attention"},
		{"vgg", "lrp-epsilon", nil, ""},
		{"vgg", "lrp-epsilon", inner, ""},
		{"vgg", "lrp-epsilon", nowhere, `is called "nowhere"`},
		{"vgg", "grad-cam", nil, ""},
		{"vit", "tibav", nil, ""},
		{"vit", "lrp-epsilon", halved, ""},
		{"vit", "deeplift", nil, ""},
		{"none", "tibav", nil, ""},
	} {
		s, _ := Builtin().Lookup("attribute/" + tt.method)
		if tt.params == nil {
			tt.params = s.NewParams()
		}
		err := m.Unfit(t.Context(), s, tt.params, at("../experiments/quickstart/"+tt.net+".onnx"))
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %v, want %q", tt.method, tt.net, err, tt.want)
		}
		if err := m.Unfit(t.Context(), s, tt.params, s.NewParams()); err != nil {
			t.Errorf("%s of what is no model: %v", tt.method, err)
		}
	}
	if len(m.seen) != 2 || m.NoRuntime != nil {
		t.Errorf("%d files were looked into: %v", len(m.seen), m.NoRuntime)
	}
}
