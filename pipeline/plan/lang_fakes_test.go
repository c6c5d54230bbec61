package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// fakeCatalog is a catalog of stages that have ports and parameters and do nothing.
type fakeCatalog map[string]*stages.Stage

func (c fakeCatalog) Lookup(name string) (*stages.Stage, bool) {
	s, ok := c[name]
	return s, ok
}

func (c fakeCatalog) Names() []string {
	var names []string
	for n := range c {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (c fakeCatalog) without(names ...string) fakeCatalog {
	out := fakeCatalog{}
	for n, s := range c {
		if !slices.Contains(names, n) {
			out[n] = s
		}
	}
	return out
}

var typesByName = func() map[string]stages.Type {
	m := map[string]stages.Type{}
	for _, t := range []stages.Type{
		stages.Boxes, stages.Curves, stages.Figure, stages.Images, stages.Labels, stages.Maps, stages.Masks,
		stages.Model, stages.Ranks, stages.Removals, stages.Scores,
		stages.TableType, stages.Targets, stages.Text, stages.Tokens, stages.WordsType,
	} {
		m[t.Name] = t
	}
	return m
}()

// fakePorts reads "model, images, labels?, maps*" or "sic:scores": name, type if it isn't called like it, ?
// for optional, * for one that over collapses.
func fakePorts(text string) (ports []stages.Port) {
	for _, f := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
		name, optional := strings.CutSuffix(f, "?")
		name, over := strings.CutSuffix(name, "*")
		name, typ, named := strings.Cut(name, ":")
		if !named {
			typ = name
		}
		t, ok := typesByName[typ]
		if !ok && name != "ranked" {
			panic("no type " + typ)
		}
		p := stages.Port{Name: name, Type: t, Optional: optional, Over: over}
		switch {
		case name == "targets" && optional:
			p.Else = "model/predict"
		case name == "ranked":
			p = stages.Port{Name: "maps", Type: stages.Ranks, Accepts: &stages.Maps, Via: "maps/rank"}
		}
		ports = append(ports, p)
	}
	return ports
}

func fake[P any](c fakeCatalog, name string, rel stages.Relation, in, out string, defaults P,
	more ...func(*stages.Def[P])) {
	d := stages.Def[P]{
		Name: name, Doc: name, Version: 1, Relation: rel,
		Inputs: fakePorts(in), Outputs: fakePorts(out), Defaults: defaults,
		Run: func(context.Context, P, *stages.Env) error { return nil },
	}
	for _, f := range more {
		f(&d)
	}
	s := stages.New(d)
	c[name] = &s
}

type (
	noParams   struct{}
	stepParams struct {
		Step int `yaml:"step" doc:"step"`
	}
	folderParams struct {
		Path   string `yaml:"path" doc:"folder" file:"read"`
		Size   int    `yaml:"size" doc:"pixels" min:"1"`
		Resize int    `yaml:"resize" doc:"pixels" min:"0"`
		Crop   int    `yaml:"crop" doc:"pixels" min:"0"`
	}
	onnxParams struct {
		Path   string    `yaml:"path" doc:"file" file:"read"`
		Preset string    `yaml:"preset" doc:"normalisation" choices:"none|imagenet|half|resisc45"`
		Mean   []float64 `yaml:"mean" doc:"channel means"`
	}
	attrParams struct {
		Target string `yaml:"target" doc:"class"`
		Layer  string `yaml:"layer" doc:"layer"`
		Output string `yaml:"output" doc:"of the model" choices:"logit|probability"`
		Reduce string `yaml:"reduce" doc:"channels" choices:"sum|abs-sum|sum-abs|none"`
	}
	igParams struct {
		attrParams
		Steps int     `yaml:"steps" doc:"steps" min:"1" max:"1000"`
		Alpha float64 `yaml:"alpha" doc:"share" min:"0" max:"1"`
	}
	absParams struct {
		attrParams
		Abs bool `yaml:"abs" doc:"absolute values"`
	}
	randomParams struct {
		attrParams
		Distribution string `yaml:"distribution" doc:"of the values" choices:"uniform|normal"`
	}
	occlusionParams struct {
		attrParams
		Variant string `yaml:"variant" doc:"which" choices:"paper|official"`
		Window  int    `yaml:"window" doc:"pixels" min:"1"`
		Stride  int    `yaml:"stride" doc:"pixels" min:"1"`
	}
	riseParams struct {
		attrParams
		Masks int     `yaml:"masks" doc:"how many" min:"1"`
		Cells int     `yaml:"cells" doc:"a side" min:"1"`
		P     float64 `yaml:"p" doc:"share" min:"0" max:"1"`
	}
	predictParams struct {
		Target string `yaml:"target" doc:"class"`
	}
	rankParams struct {
		Values string `yaml:"values" doc:"of the map" choices:"magnitude|signed"`
	}
	perturbParams struct {
		Values string  `yaml:"values" doc:"of the map" choices:"magnitude|signed"`
		Order  string  `yaml:"order" doc:"of removal" choices:"morf|lerf"`
		Steps  int     `yaml:"steps" doc:"steps" min:"1"`
		Kernel int     `yaml:"kernel" doc:"pixels" min:"1"`
		Sigma  float64 `yaml:"sigma" doc:"pixels" min:"0"`
	}
	responseParams struct {
		Response string `yaml:"response" doc:"which" choices:"probability|logit|correct|top-1"`
		Variant  string `yaml:"variant" doc:"which" choices:"paper|official"`
	}
	tableParams struct {
		Rows    []string `yaml:"rows" doc:"axes"`
		Columns []string `yaml:"columns" doc:"axes"`
		Mark    string   `yaml:"mark" doc:"id"`
	}
	amongParams struct {
		Among      string  `yaml:"among" doc:"axis"`
		Reference  string  `yaml:"reference" doc:"id"`
		Alpha      float64 `yaml:"alpha" doc:"level" min:"0" max:"1"`
		Correction string  `yaml:"correction" doc:"which" choices:"none|holm"`
	}
	gridParams struct {
		N       int    `yaml:"n" doc:"a side" min:"1"`
		Classes string `yaml:"classes" doc:"which" choices:"corners-repeat|distinct"`
		Explain string `yaml:"explain" doc:"which" choices:"corners|every"`
		Count   int    `yaml:"count" doc:"how many" min:"1" key:"-"`
	}
	confidentParams struct {
		AtLeast float64 `yaml:"at_least" doc:"probability" min:"0" max:"1"`
	}
	boxplotParams struct {
		X     string   `yaml:"x" doc:"axis"`
		Group string   `yaml:"group" doc:"axis"`
		Facet []string `yaml:"facet" doc:"axes"`
	}
	axisParams struct {
		Rank string `yaml:"rank" doc:"axis"`
		Rate string `yaml:"rate" doc:"axis"`
		Line string `yaml:"line" doc:"axis"`
	}
	shapesParams struct {
		Count int `yaml:"count" doc:"images" key:"-" min:"1"`
		Size  int `yaml:"size" doc:"pixels" min:"16" max:"1024"`
		Seed  int `yaml:"seed" doc:"of the draws" min:"0"`
		Dom   dom `yaml:"domain" doc:"look"`
	}
)

// dom is a parameter that reads itself.
type dom byte

func (d dom) MarshalText() ([]byte, error) { return []byte{byte(d)}, nil }
func (d *dom) UnmarshalText(b []byte) error {
	if len(b) != 1 || b[0] != 'a' && b[0] != 'b' {
		return fmt.Errorf("%q is not a domain", b)
	}
	*d = dom(b[0])
	return nil
}

func (p *shapesParams) Validate() error {
	if p.Size%2 != 0 {
		return stages.BadField("size", "%d is odd", p.Size)
	}
	return nil
}

// paperCatalog has a fake for every stage that the experiments in testdata/papers use.
func paperCatalog() fakeCatalog {
	c := fakeCatalog{}
	fake(c, "dataset/folder", stages.Each, "", "images, labels", folderParams{Size: 224})
	fake(c, "dataset/voc", stages.Each, "", "images, labels, boxes", folderParams{Size: 224})
	fake(c, "dataset/shapes", stages.Each, "", "images, labels, masks",
		shapesParams{Count: 64, Size: 64, Dom: 'a'})
	fake(c, "dataset/confident", stages.Whole, "model, images", "images, labels",
		confidentParams{AtLeast: 0.5})
	fake(c, "model/onnx", stages.Whole, "", "model", onnxParams{Preset: "none"})
	fake(c, "model/predict", stages.Each, "model, images", "targets, scores",
		predictParams{Target: "predicted"})
	for _, n := range []string{"model/gridpg", "model/difull", "model/dipart"} {
		fake(c, n, stages.Whole, "model", "model", noParams{})
	}
	a := attrParams{Target: "predicted", Layer: "input", Output: "logit", Reduce: "sum"}
	const in, out = "model, images, targets?", "maps"
	for _, n := range []string{"constant", "input-x-gradient", "clrp", "guided-grad-cam", "abslrp",
		"grad-cam", "raw-attention", "deconvolution", "deeplift", "lrp-epsilon"} {
		fake(c, "attribute/"+n, stages.Each, in, out, a)
	}
	for _, n := range []string{"saliency", "guided-backprop"} {
		fake(c, "attribute/"+n, stages.Each, in, out, absParams{a, false})
	}
	for _, n := range []string{"integrated-gradients", "left-ig", "transition-attention"} {
		fake(c, "attribute/"+n, stages.Each, in, out, igParams{a, 32, 1})
	}
	fake(c, "attribute/random", stages.Each, in, out, randomParams{a, "uniform"},
		func(d *stages.Def[randomParams]) { d.Seeded = true })
	fake(c, "attribute/occlusion", stages.Each, in, out, occlusionParams{a, "paper", 15, 8})
	fake(c, "attribute/rise", stages.Each, in, out, riseParams{a, 4000, 7, 0.5})
	fake(c, "maps/rank", stages.Each, "maps", "ranks", rankParams{"magnitude"})
	p := perturbParams{Values: "magnitude", Order: "morf", Steps: 32, Kernel: 11, Sigma: 5}
	for _, n := range []string{"insertion", "deletion", "ablation"} {
		fake(c, "perturb/"+n, stages.Each, "model, images, ranked, targets?, labels?", "curves", p)
	}
	fake(c, "perturb/gradient-masking", stages.Each, "model, images, targets?",
		"morf:removals, lerf:removals, outputs:curves, impact:maps", noParams{})
	fake(c, "perturb/masked", stages.Each, "model, images, removals", "images", stepParams{})
	fake(c, "perturb/pic", stages.Each, "model, images, maps", "curves, lengths:curves", noParams{})
	fake(c, "mosaic/gae", stages.Whole, "model, images, targets",
		"images, positives:images, targets, scoring:maps", noParams{})
	fake(c, "mosaic/grid", stages.Expand, "images", "images, targets, cells:boxes",
		gridParams{N: 2, Classes: "distinct", Explain: "every", Count: 100})
	fake(c, "score/gae", stages.Each,
		"maps, masked_maps:maps*, mosaic_maps:maps, outputs:curves, impact:maps, scoring:maps",
		"consistency:scores, contrastiveness:scores, total:scores", noParams{})
	fake(c, "score/auc", stages.Each, "curves", "scores", responseParams{"probability", "paper"})
	fake(c, "score/rise", stages.Each, "insertion:curves, deletion:curves",
		"insertion:scores, deletion:scores, difference:scores", responseParams{"probability", "paper"})
	fake(c, "score/mas", stages.Each, "insertion:curves, deletion:curves, maps",
		"insertion:scores, deletion:scores, difference:scores", responseParams{"probability", "paper"})
	fake(c, "score/pic", stages.Each, "curves, lengths:curves", "sic:scores, aic:scores", noParams{})
	fake(c, "score/fit", stages.Each, "model, images, maps", "sic:scores, aic:scores", noParams{})
	fake(c, "score/grid-pointing", stages.Each, "maps, cells:boxes", "scores", noParams{})
	fake(c, "stats/irr", stages.Whole, "scores", "alpha:scores", axisParams{})
	fake(c, "stats/wilcoxon", stages.Whole, "scores", "table", amongParams{Correction: "none"})
	fake(c, "fuse/meta-rank", stages.Whole, "scores", "table", axisParams{})
	fake(c, "report/table", stages.Whole, "values:scores, marks:table?", "table", tableParams{})
	fake(c, "report/sheet", stages.Whole, "maps, images, targets?", "figure", axisParams{})
	fake(c, "report/curves", stages.Whole, "curves", "figure", axisParams{})
	fake(c, "report/boxplot", stages.Whole, "scores", "figure", boxplotParams{})
	fake(c, "report/checked", stages.Whole, "scores, table?", "figure", axisParams{},
		func(d *stages.Def[axisParams]) {
			d.Check = func(p axisParams, wired func(string) bool) error {
				if p.Line != "" && !wired("table") {
					return stages.BadField("line", "a line needs the input table")
				}
				return nil
			}
		})
	return c
}

// mustParse parses an experiment that has nothing wrong with it.
func mustParse(t testing.TB, c Catalog, text string, o Overrides) *Plan {
	t.Helper()
	p, err := Parse("x.yaml", []byte(text), "", c, o)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return p
}

// diagsOf parses an experiment that has something wrong with it.
func diagsOf(t testing.TB, c Catalog, text string, o Overrides) Diags {
	t.Helper()
	_, err := Parse("x.yaml", []byte(text), "", c, o)
	var ds Diags
	if err != nil && !errors.As(err, &ds) {
		t.Fatalf("the error isn't Diags: %v", err)
	}
	return ds
}

func (p *Plan) stepCalled(t testing.TB, name string) *Step {
	t.Helper()
	for _, s := range p.Steps {
		if s.Name == name {
			return s
		}
	}
	var names []string
	for _, s := range p.Steps {
		names = append(names, s.Name)
	}
	t.Fatalf("no step %q among %q", name, names)
	return nil
}

// graphText writes each cell with its inputs, one a line.
func (p *Plan) graphText() string {
	var b strings.Builder
	for _, c := range p.Cells {
		b.WriteString(c.String() + " = " + c.Stage.Name)
		for k, in := range c.Inputs {
			for _, e := range in.Edges {
				fmt.Fprintf(&b, " %s", c.Stage.Inputs[k].Name)
				if len(e.Coord) > 0 {
					fmt.Fprintf(&b, "[%s]", CoordString(e.Coord))
				}
				fmt.Fprintf(&b, "<%s.%s", e.From, e.From.Stage.Outputs[e.Port].Name)
			}
		}
		fmt.Fprintf(&b, " %+v\n", c.Params)
	}
	return b.String()
}
