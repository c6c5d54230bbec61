package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/mosaic"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/score"
	"github.com/runexp/runexp/stages/stagetest"
)

// use returns the use of a stage whose defaults change made other, if it isn't nil.
func use[P any](s *stages.Stage, change func(*P), wires map[string]Wire) Use {
	p := s.NewParams()
	if change != nil {
		change(p.(*P))
	}
	return Use{Name: "the-" + s.Name[strings.Index(s.Name, "/")+1:], Stage: s, Params: p,
		Wired: func(port string) []Wire {
			if w, ok := wires[port]; ok {
				return []Wire{w}
			}
			return nil
		}}
}

// TestTextsForImages checks that texts are refused for models of images, and images for those of texts.
func TestTextsForImages(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	net := func(path string) Wire {
		change := func(p *model.ONNXParams) { p.Path = "../experiments/" + path }
		return Wire{use(&model.ONNX, change, nil), "model"}
	}
	images := Wire{use[dataset.ShapesParams](&dataset.Shapes, nil, nil), "images"}
	texts := Wire{use(&dataset.Text, func(p *dataset.TextParams) {
		p.Path, p.Tokenizer = "../experiments/text/reviews.csv", "../experiments/text/tokenizer.json"
	}, nil), "tokens"}
	for _, tt := range []struct {
		model, images Wire
		want          string
	}{
		{net("text/reviews.onnx"), texts, ""},
		{net("text/reviews.onnx"), images, "the-shapes has images, and the model takes texts"},
		{net("quickstart/vgg.onnx"), images, ""},
		{net("quickstart/vgg.onnx"), texts, "the-text has texts, and the model takes images"},
	} {
		var m Models
		err := m.Unfit(t.Context(), use[model.PredictParams](&model.Predict, nil,
			map[string]Wire{"model": tt.model, "images": tt.images}))
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

// TestHiddenTextsAreKnown checks that a token that hides others is refused where the data set names none, or
// one that the model doesn't know, and texts of another tokeniser; before anything runs.
func TestHiddenTextsAreKnown(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	reviews := func(p *model.ONNXParams) { p.Path = "../experiments/text/reviews.onnx" }
	net := Wire{use(&model.ONNX, reviews, nil), "model"}
	for _, tt := range []struct{ head, field, want string }{
		{`{"pad": 0, "mask": 4}`, "", ""},
		{`{"pad": 0}`, "baseline", "names no mask token"},
		{`{"mask": 1000000}`, "baseline", "whose id is 1000000 by the data set"},
		{`{"vocabulary": 1000000}`, "", "it has another tokeniser"},
	} {
		path := filepath.Join(t.TempDir(), "tokens.jsonl")
		const text = `{"text": "good", "ids": [2, 9, 3], "tokens": ["[CLS]", "good", "[SEP]"], ` +
			`"offsets": [[0, 0], [0, 4], [0, 0]], "special": [1, 0, 1]}`
		if err := os.WriteFile(path, []byte(tt.head+"\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		texts := use(&dataset.Tokens, func(p *dataset.TokensParams) { p.Path = path }, nil)
		var m Models
		err := m.Unfit(t.Context(), use(&attribute.IntegratedGradients,
			func(p *attribute.IntegratedGradientsParams) { p.Baseline = "mask" },
			map[string]Wire{"model": net, "images": {texts, "tokens"}}))
		var of *stages.FieldError
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) ||
			errors.As(err, &of) != (tt.field != "") || of != nil && of.Field != tt.field {
			t.Errorf("%s: %v, want %q", tt.head, err, tt.want)
		}
	}
}

// TestUnfit holds that stages are refused for models that they don't fit, with the
// parameters they have, and for no others; and that the error is of the parameter.
func TestUnfit(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	onnx := func(net string, change func(*model.ONNXParams)) Use {
		return use(&model.ONNX, func(p *model.ONNXParams) {
			p.Path = "../experiments/quickstart/" + net + ".onnx"
			if change != nil {
				change(p)
			}
		}, nil)
	}
	shapes := func(size int) Use {
		return use(&dataset.Shapes, func(p *dataset.ShapesParams) { p.Size = size }, nil)
	}
	explained := func(net string, size int) map[string]Wire {
		return map[string]Wire{"model": {onnx(net, nil), "model"}, "images": {shapes(size), "images"},
			"labels": {shapes(size), "labels"}}
	}
	vgg, vit := explained("vgg", 64), explained("vit", 64)
	saliency := func(change func(*attribute.SaliencyParams)) Use {
		return use(&attribute.Saliency, change, vgg)
	}
	cam := func(layer attribute.Layers) Use {
		return use(&attribute.GradCAM, func(p *attribute.GradCAMParams) { p.Layer = layer }, vgg)
	}
	lrp := func(wires map[string]Wire, change func(*attribute.LRPEpsilonParams)) Use {
		return use(&attribute.LRPEpsilon, change, wires)
	}
	grids := use[mosaic.GridParams](&mosaic.Grid, nil,
		map[string]Wire{"images": {shapes(64), "images"}, "labels": {shapes(64), "labels"}})
	wide := map[string]Wire{"model": {onnx("resnet",
		func(p *model.ONNXParams) { p.Size.H, p.Size.W = 128, 128 }), "model"}, "images": {grids, "images"}}
	narrow := map[string]Wire{"model": {onnx("resnet", nil), "model"}, "images": {grids, "images"}}
	// of returns what a stage that rewrites models makes of a net, and saliency maps on that.
	of := func(s *stages.Stage, net string) (Use, Use) {
		made := Use{Name: "the-setting", Stage: s, Params: s.NewParams(),
			Wired: func(string) []Wire { return []Wire{{onnx(net, nil), "model"}} }}
		return made, use[attribute.SaliencyParams](&attribute.Saliency, nil,
			map[string]Wire{"model": {made, "model"}, "images": {grids, "images"}})
	}
	pooled, mapsOfPooled := of(&model.GridPG, "resnet")
	convolved, mapsOfConvolved := of(&model.GridPG, "vgg")
	embedded, mapsOfEmbedded := of(&model.GridPG, "vit")
	full, mapsOfFull := of(&model.DiFull, "vit")
	part, mapsOfPart := of(&model.DiPart, "vgg")
	broken, _ := of(&model.DiPart, "vit")
	camOfFull := use(&attribute.GradCAM, func(p *attribute.GradCAMParams) { p.Layer = "final" },
		map[string]Wire{"model": {full, "model"}, "images": {grids, "images"}})
	list := filepath.Join(t.TempDir(), "names.txt")
	names := "zero one two three four five six seven eight nine ten eleven"
	if err := os.WriteFile(list, []byte(strings.ReplaceAll(names, " ", "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	labelled := onnx("vgg", func(p *model.ONNXParams) { p.Labels = list })
	named := func(target string) Use {
		return use(&attribute.Saliency, func(p *attribute.SaliencyParams) { p.Target = target },
			map[string]Wire{"model": {labelled, "model"}, "images": {shapes(64), "images"}})
	}
	rewritten := Use{Name: "the-setting", Stage: &model.GridPG, Params: model.GridPG.NewParams(),
		Wired: func(string) []Wire { return []Wire{{labelled, "model"}} }}
	namedOfGrids := use(&attribute.Saliency, func(p *attribute.SaliencyParams) { p.Target = "eleven" },
		map[string]Wire{"model": {rewritten, "model"}, "images": {grids, "images"}})
	var m Models
	for _, tt := range []struct {
		name, field, want string
		use               Use
	}{
		{"a net without attention", "", "the-onnx: the model has no attention",
			use[attribute.TIBAVParams](&attribute.TIBAV, nil, vgg)},
		{"a net without attention, again", "",
			"attribute/attention-rollout doesn't fit it, for the same reason as attribute/tibav",
			use[attribute.AttentionRolloutParams](&attribute.AttentionRollout, nil, vgg)},
		{"a net with attention", "", "", use[attribute.TIBAVParams](&attribute.TIBAV, nil, vit)},
		{"rules", "", "", lrp(vgg, nil)},
		{"an inner layer", "", "", lrp(vgg, func(p *attribute.LRPEpsilonParams) { p.Layer = "middle" })},
		{"no such layer", "layer",
			`is called so; middle is called "/6/Relu_output_0", and final "/11/Relu_output_0"`,
			lrp(vgg, func(p *attribute.LRPEpsilonParams) { p.Layer = "nowhere" })},
		{"halved gates", "", "", lrp(vit, func(p *attribute.LRPEpsilonParams) { p.Gates = "halved" })},
		{"a comparison with a reference", "", "",
			use[attribute.DeepLIFTParams](&attribute.DeepLIFT, nil, vit)},
		{"a layer with places", "", "", cam("final")},
		{"a layer's name", "", "", cam("/6/Relu_output_0")},
		{"a layer without places", "layer", "values of shape [12] for an image have no places in the image",
			cam("logits")},
		{"a class", "", "", saliency(func(p *attribute.SaliencyParams) { p.Target = "11" })},
		{"a class's name, which the data set has", "", "",
			saliency(func(p *attribute.SaliencyParams) { p.Target = "square" })},
		{"a name to predict, which the data set has", "", "",
			use(&model.Predict, func(p *model.PredictParams) { p.Target = "square" }, vgg)},
		{"a class's name, which the model has", "", "", named("two - eleven")},
		{"a name that is none of the model's", "target", `did you mean "eleven"?`, named("elevne")},
		{"a name without names", "target", "no names of classes are known",
			use(&attribute.Saliency, func(p *attribute.SaliencyParams) { p.Target = "square" },
				map[string]Wire{"model": vgg["model"], "images": vgg["images"]})},
		{"a name of a file that isn't there", "", "", use(&attribute.Saliency,
			func(p *attribute.SaliencyParams) { p.Target = "square" }, map[string]Wire{"model": {onnx("vgg",
				func(p *model.ONNXParams) { p.Labels = "none.txt" }), "model"}, "images": vgg["images"]})},
		{"a name of a rewritten model's class", "", "", namedOfGrids},
		{"no such class", "target", "class 1000 is not one of the model's 12, which are 0 to 11",
			saliency(func(p *attribute.SaliencyParams) { p.Target = "1000" })},
		{"no such class in a difference", "target", "class 12 is",
			saliency(func(p *attribute.SaliencyParams) { p.Target = "predicted-12" })},
		{"the last of all classes", "", "",
			saliency(func(p *attribute.SaliencyParams) { p.Target = "predicted:12" })},
		{"the last but one more", "target", "predicted:13: the model has 12 classes",
			saliency(func(p *attribute.SaliencyParams) { p.Target = "label-predicted:13" })},
		{"a difference that may be none", "", "",
			saliency(func(p *attribute.SaliencyParams) { p.Target = "label-11" })},
		{"no such class to predict", "target", "class 12 is",
			use(&model.Predict, func(p *model.PredictParams) { p.Target = "12" }, vgg)},
		{"the last block", "", "",
			use(&attribute.TransitionAttention, func(p *attribute.TransitionAttentionParams) { p.Start = 4 },
				vit)},
		{"beyond the last block", "start", "start 5: the model has 5 blocks",
			use(&attribute.TransitionAttention, func(p *attribute.TransitionAttentionParams) { p.Start = 5 },
				vit)},
		{"a rollout from beyond", "start", "start 7",
			use(&attribute.AttentionRollout, func(p *attribute.AttentionRolloutParams) { p.Start = 7 }, vit)},
		{"an ablation of attention", "ablation", "has no attention",
			use(&attribute.AbsLRP, func(p *attribute.AbsLRPParams) { p.Ablation = "values-only" }, vgg)},
		{"images of another size", "",
			"the images of the-shapes have 32×32 pixels, and the model takes 64×64",
			use[attribute.SaliencyParams](&attribute.Saliency, nil, explained("vgg", 32))},
		{"grids", "", "", use[attribute.SaliencyParams](&attribute.Saliency, nil, wide)},
		{"grids of a model for their cells", "",
			"the images of the-grid have 128×128 pixels, and the model takes 64×64",
			use[attribute.SaliencyParams](&attribute.Saliency, nil, narrow)},
		{"global pooling over grids", "", "", pooled}, {"", "", "", mapsOfPooled},
		{"dense layers over grids", "", "", convolved}, {"", "", "", mapsOfConvolved},
		{"position embeddings over grids", "", "GridPG has no meaning for", embedded},
		{"of a model that can't be rewritten", "", "", mapsOfEmbedded},
		{"cells one by one, whatever the net", "", "", full}, {"", "", "", mapsOfFull},
		{"a layer that isn't stitched", "layer", "the cells of a grid", camOfFull},
		{"cells of the final layer", "", "", part}, {"", "", "", mapsOfPart},
		{"no cells of the final layer", "", "DiPart cuts the features", broken},
		{"a curve over the same images, which were told of", "", "",
			use[perturb.Params](&perturb.Insertion, nil, explained("vgg", 32))},
		{"a model", "", "", onnx("vgg", nil)},
		{"no such output", "output", `the model has no output "logit"; it has "logits"`,
			onnx("vgg", func(p *model.ONNXParams) { p.Output = "logit" })},
		{"no such input", "input", `no input "images"`,
			onnx("vgg", func(p *model.ONNXParams) { p.Input = "images" })},
		{"another layout", "layout", "no dimension of 1 or 3 channels where the layout expects it",
			onnx("vgg", func(p *model.ONNXParams) { p.Layout = "nhwc" })},
		{"another size", "size", "size is 32, but the model only takes images of [3 64 64]",
			onnx("vgg", func(p *model.ONNXParams) { p.Size.H, p.Size.W = 32, 32 })},
		{"of a model that is refused itself", "", "",
			use[attribute.SaliencyParams](&attribute.Saliency, nil,
				map[string]Wire{"model": {onnx("vgg", func(p *model.ONNXParams) { p.Output = "logit" }),
					"model"}})},
		{"maps of another program", "", "",
			use(&attribute.External, func(p *attribute.ExternalParams) { p.Path = "maps" }, vgg)},
		{"a file that isn't there", "", "",
			use[attribute.TIBAVParams](&attribute.TIBAV, nil, explained("none", 64))},
		{"what is no model", "", "",
			use[attribute.TIBAVParams](&attribute.TIBAV, nil, map[string]Wire{"model": {grids, "model"}})},
	} {
		err := m.Unfit(t.Context(), tt.use)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		var of *stages.FieldError
		if errors.As(err, &of) != (tt.field != "") || of != nil && of.Field != tt.field {
			t.Errorf("%s: the error is of the parameter %+v, want %q", tt.name, of, tt.field)
		}
	}
	if m.NoRuntime != nil {
		t.Error(m.NoRuntime)
	}
	for _, tt := range []struct {
		use  Use
		want []string
	}{
		{lrp(vgg, nil), nil}, {lrp(vit, nil), nil},
		{use[attribute.GuidedBackpropParams](&attribute.GuidedBackprop, nil, vgg), nil},
		{use[attribute.GuidedBackpropParams](&attribute.GuidedBackprop, nil, vit),
			[]string{"attribute/guided-backprop on the-onnx: the model has no Relu"}},
	} {
		var m Models
		for range 2 { // it's said once
			if err := m.Unfit(t.Context(), tt.use); err != nil {
				t.Error(err)
			}
		}
		if !slices.EqualFunc(m.Remarks, tt.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", tt.use.Stage.Name, m.Remarks, tt.want)
		}
	}
}

// TestMislabelled holds that labels of other classes than the model's are reported, but not of half of them
// or more.
func TestMislabelled(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	net := use(&model.ONNX, func(p *model.ONNXParams) { p.Path = "../experiments/quickstart/vgg.onnx" }, nil)
	for classes, want := range map[string][]string{"12": nil, "6": nil,
		"5": {"the labels of the-shapes are of 5 classes, and the-onnx has 12: which are they? names: FILE " +
			"of dataset/folder says it, a text file with the model's classes, a line each"},
		"13": {"the labels of the-shapes are of 13 classes, and the-onnx has 12"}} {
		other := dataset.Shapes
		other.Facts = func(any, map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"labels": {"classes": classes}}, nil
		}
		var m Models
		wires := map[string]Wire{"model": {net, "model"},
			"labels": {use[dataset.ShapesParams](&other, nil, nil), "labels"}}
		if err := m.Unfit(t.Context(), use[score.Top1Params](&score.Top1, nil, wires)); err != nil ||
			!slices.Equal(m.Remarks, want) {
			t.Errorf("%s classes: %v, %q, want %q", classes, err, m.Remarks, want)
		}
	}
}

// TestEveryUserOfModels holds that all stages that can't do without a model may be tried on one.
func TestEveryUserOfModels(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path = "../experiments/quickstart/vgg.onnx"
	trial, err := model.NewTrial(t.Context(), *p)
	if err != nil {
		t.Fatal(err)
	}
	defer trial.Close()
	for _, s := range Builtin().Family("") {
		if port := s.Input("model"); port == nil || port.Optional || s.Name == "dataset/units" {
			continue // dataset/units makes its images itself, for a model that isn't from a file
		}
		if s.Name == "model/target" {
			continue // it is tried as what makes a model
		}
		if s.Input("subsets") != nil {
			continue // perturb/subset runs the model for it
		}
		ran := false
		probe := *s
		probe.Run = func(ctx context.Context, params any, e *stages.Env) error {
			ran = true
			return fmt.Errorf("it ran")
		}
		if err := trial.Unfit(t.Context(), &probe, s.NewParams(),
			func(string) bool { return true }, nil); err == nil || !ran {
			t.Errorf("%s isn't tried: %v", s.Name, err)
		}
	}
}

// Every stage that takes a model can be tried on one of images and one of texts with all its inputs wired,
// and answers without a panic.
func TestEveryStageCanBeTried(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	for _, path := range []string{"quickstart/vgg.onnx", "text/reviews.onnx"} {
		p := model.ONNX.NewParams().(*model.ONNXParams)
		p.Path = "../experiments/" + path
		trial, err := model.NewTrial(t.Context(), *p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range Builtin().Family("") {
			if err := trial.Unfit(t.Context(), s, s.NewParams(), func(string) bool { return true },
				nil); err != nil && strings.Contains(err.Error(), "bug") {
				t.Errorf("%s: %v", path, err)
			}
		}
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
	}
}
