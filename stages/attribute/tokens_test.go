package attribute

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// tokensNet is a net of attention_maps.py, of 4 × 4 patches.
func tokensNet(t *testing.T, name string, stated onnx.Tokens) stages.Data {
	t.Helper()
	return modeltest.Model(t, model.ONNXParams{Path: filepath.Join("testdata", "tokens", name+".onnx"),
		Preset: "unit", Tokens: stated})
}

// TestTokensFound holds what the graphs of PyTorch's nets show of their tokens: class tokens, registers, a
// distillation token, and a head that pools by an attention.
func TestTokensFound(t *testing.T) {
	for name, want := range map[string]relevance.Attention{
		"reg4":      {Tokens: 21, First: 5, Read: []int{0}},
		"distilled": {Tokens: 18, First: 2, Read: []int{0, 1}},
		"average":   {Tokens: 17, First: 1, Read: span(1, 17)},
		"mean":      {Tokens: 16, First: 0, Read: span(0, 16)},
		"pooled":    {Tokens: 16, First: 0, Read: span(0, 16), Pool: "a head's"},
	} {
		n := modeltest.Net(t, tokensNet(t, name, onnx.Tokens{}))
		g, err := n.Graph(t.Context(), stagetest.NewSlot(), n.Fit(2, 2))
		if err != nil {
			t.Fatal(err)
		}
		a, err := relevance.Attend(g)
		if err != nil {
			t.Fatal(err)
		}
		if a.Tokens != want.Tokens || a.First != want.First || a.Height != 4 || a.Width != 4 ||
			len(a.Blocks) != 2 || !slices.Equal(a.Read, want.Read) || (a.Pool == "") != (want.Pool == "") {
			t.Errorf("%s: %+v, want %+v", name, a, want)
		}
		if _, err := relevance.FindHead(g, a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, final := relevance.Layers(g); final == "" || !relevance.SureGrid(g, a.Tokens) {
			t.Errorf("%s: layer final is %q", name, final)
		}
	}
}

func span(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// TestTokensStated holds that what is stated of tokens decides over what is found, for methods of attention
// and of layers, and that another number of tokens is refused.
func TestTokensStated(t *testing.T) {
	cam := &LayerCAMParams{GradientCAM{CAM: CAM{Tapped: tappedAt("final"), Upsample: "nearest"}}}
	cam.Size = "layer"
	run := func(stated onnx.Tokens, s stages.Stage, params any) ([][]float64, error) {
		in := attnLRPInput(t, "tokens/reg4")
		in["model"] = []stages.Data{tokensNet(t, "reg4", stated)}
		if _, err := stagetest.Try(s, params, in); err != nil {
			return nil, err
		}
		return mapsOf(t, s, params, in), nil
	}
	for _, m := range []struct {
		stage  stages.Stage
		params any
	}{{LeGrad, LeGrad.NewParams()}, {AttentionRollout, AttentionRollout.NewParams()}, {LayerCAM, cam}} {
		found, err := run(onnx.Tokens{}, m.stage, m.params)
		if err != nil {
			t.Fatal(err)
		}
		same, err := run(onnx.Tokens{Prefix: 5, Height: 4, Width: 4}, m.stage, m.params)
		if err != nil || !slices.Equal(found[0], same[0]) {
			t.Errorf("%s: tokens that are as found change the map: %v", m.stage.Name, err)
		}
		other, err := run(onnx.Tokens{Prefix: 1, Height: 4, Width: 5}, m.stage, m.params)
		if err != nil || slices.Equal(found[0], other[0]) {
			t.Errorf("%s: other tokens don't change the map: %v", m.stage.Name, err)
		}
	}
	_, err := run(onnx.Tokens{Prefix: 1, Height: 5, Width: 5}, LeGrad, LeGrad.NewParams())
	if err == nil || !strings.Contains(err.Error(), "tokens 1+5x5 that are stated for the model are 26") {
		t.Errorf("26 tokens of a net that has 21: %v", err)
	}
}

// TestAttentionOfOthers holds why heads that pool by an attention, and windows, are refused.
func TestAttentionOfOthers(t *testing.T) {
	for _, tt := range []struct {
		net   string
		stage stages.Stage
		want  string
	}{
		{"tokens/pooled", AttentionRollout, "of a query that is no token"},
		{"tokens/pooled", GenericAttention, "use attribute/legrad or attribute/grad-eclip"},
		{"subset/swin", LeGrad, "limited to windows"},
		{"subset/swin", GradECLIP, "limited to windows"},
	} {
		_, err := stagetest.Try(tt.stage, tt.stage.NewParams(), attnLRPInput(t, tt.net))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %v", tt.stage.Name, tt.net, err)
		}
	}
	in := attnLRPInput(t, "tokens/reg4")
	for start, want := range map[int]string{2: "start 2: the model has 2 blocks",
		-3: "start -3: the model has 2 blocks"} {
		if _, err := stagetest.Try(LeGrad, &LeGradParams{common(), Balanced{}, start}, in); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("start %d: %v", start, err)
		}
	}
}
