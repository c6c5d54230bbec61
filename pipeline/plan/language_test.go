package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// stepText writes the cells of a step with their edges, one a line.
func stepText(t *testing.T, p *Plan, step string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range p.stepCalled(t, step).Cells {
		b.WriteString(CoordString(c.Coord))
		for k, in := range c.Inputs {
			if len(in.Edges) > 0 {
				b.WriteString(" | " + c.Stage.Inputs[k].Name)
			}
			for _, e := range in.Edges {
				b.WriteString(" ")
				if len(e.Coord) > 0 {
					b.WriteString("(" + CoordString(e.Coord) + ")")
				}
				b.WriteString(e.From.String() + "." + e.From.Stage.Outputs[e.Port].Name)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

const base = `name: x
axes:
  model: [b, a]
  method:
    s: {uses: attribute/saliency, with: {abs: true}}
    r: {uses: attribute/random}
stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model}.onnx"}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
`

func TestCellsAndEdges(t *testing.T) {
	for _, tc := range []struct{ name, text, step, want string }{
		{"a leaf has its matrix", base, "model", "model=b\nmodel=a\n"},
		{"axes are those of the inputs and matrix", base, "maps",
			`method=s,model=b | model model[model=b].model | images images.images | targets targets~model~images[model=b].targets
method=s,model=a | model model[model=a].model | images images.images | targets targets~model~images[model=a].targets
method=r,model=b | model model[model=b].model | images images.images | targets targets~model~images[model=b].targets
method=r,model=a | model model[model=a].model | images images.images | targets targets~model~images[model=a].targets
`},
		{"over collapses, sorted by id",
			base + "  sheet: {uses: report/sheet, in: {maps: maps, images: images}, over: [model]}\n",
			"sheet",
			`method=s | maps (model=a)maps[method=s,model=a].maps (model=b)maps[method=s,model=b].maps | images images.images
method=r | maps (model=a)maps[method=r,model=a].maps (model=b)maps[method=r,model=b].maps | images images.images
`},
		{"over all",
			base +
				"  pic: {uses: score/fit, in: {model: model, images: images, maps: maps}}\n  all: {uses: " +
				"fuse/meta-rank, in: {scores: pic.sic}, over: all}\n", "all",
			" | scores (method=r,model=a)pic[method=r,model=a].sic " +
				"(method=r,model=b)pic[method=r,model=b].sic" +
				" (method=s,model=a)pic[method=s,model=a].sic (method=s,model=b)pic[method=s,model=b].sic\n"},
		{"only and exclude",
			strings.Replace(base, "images: images}}\n",
				"images: images}, only: [{method: s}, {model: a}], exclude: [{method: [s, r], model: b}]}\n",
				1), "maps",
			`method=s,model=a | model model[model=a].model | images images.images | targets targets~model~images[model=a].targets
method=r,model=a | model model[model=a].model | images images.images | targets targets~model~images[model=a].targets
`},
		{"what doesn't exist upstream doesn't exist",
			strings.Replace(base, `onnx"}`, `onnx"}, only: [{model: b}]`, 1), "maps",
			`method=s,model=b | model model[model=b].model | images images.images | targets targets~model~images[model=b].targets
method=r,model=b | model model[model=b].model | images images.images | targets targets~model~images[model=b].targets
`},
		{"a stack adds an axis",
			base +
				`  pic: {uses: score/fit, in: {model: model, images: images, maps: maps}, only: [{method: s, model: a}]}
  all: {uses: stats/irr, in: {scores: {metric: {sic: pic.sic, aic: pic.aic}}}, over: [method]}
`, "all",
			"metric=sic,model=a | scores (method=s)pic[method=s,model=a].sic\nmetric=aic,model=a | scores " +
				"(method=s)pic[method=s,model=a].aic\n"},
		{"a stack can be collapsed",
			base + `  pic: {uses: score/fit, in: {model: model, images: images, maps: maps}, only: [{method: s, model: a}]}
  all: {uses: stats/irr, in: {scores: {metric: {sic: pic.sic, aic: pic.aic}}}, over: [metric, method]}
`, "all",
			"model=a | scores (method=s,metric=aic)pic[method=s,model=a].aic " +
				"(method=s,metric=sic)pic[method=s,model=a].sic\n"},
		{"an input may lack a collapsed axis",
			base +
				`  pic: {uses: score/fit, in: {model: model, images: images, maps: maps}, only: [{model: a}]}
  w: {uses: stats/wilcoxon, in: {scores: pic.aic}, over: [method]}
  t: {uses: report/table, in: {values: pic.sic, marks: w}, over: [method]}
`, "t",
			"model=a | values (method=r)pic[method=r,model=a].sic (method=s)pic[method=s,model=a].sic | " +
				"marks w[model=a].table\n"},
		{"the port of the input's name comes first",
			base + `  r: {uses: score/rise, in: {insertion: curves, deletion: curves}}
  curves: {uses: perturb/deletion, in: {model: model, images: images, maps: maps}, only: [{method: s, model: a}]}
  m: {uses: score/rise, in: {insertion: curves.curves, deletion: curves}}
`, "m",
			"method=s,model=a | insertion curves[method=s,model=a].curves | deletion " +
				"curves[method=s,model=a].curves\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := mustParse(t, paperCatalog(), tc.text, Overrides{})
			if d := cmp.Diff(tc.want, stepText(t, p, tc.step)); d != "" {
				t.Errorf("−want +got\n%s\nof\n%s", d, tc.text)
			}
			checkPlan(t, p)
			checkReadBack(t, p, "")
		})
	}
}

// checkPlan makes sure of what the engine relies on.
func checkPlan(t testing.TB, p *Plan) {
	t.Helper()
	names, n := map[string]bool{}, 0
	for _, s := range p.Steps {
		if !slices.IsSorted(s.Axes) {
			t.Errorf("%s: axes %q aren't sorted", s.Name, s.Axes)
		}
		if len(s.Cells) > s.Possible {
			t.Errorf("%s: %d cells of %d possible", s.Name, len(s.Cells), s.Possible)
		}
		for _, c := range s.Cells {
			if c.Index != n || p.Cells[n] != c || c.Step != s {
				t.Errorf("%s has the index %d, want %d", c, c.Index, n)
			}
			n++
			if names[c.String()] {
				t.Errorf("two cells are called %s", c)
			}
			names[c.String()] = true
			for i, co := range c.Coord {
				if co.Axis != s.Axes[i] {
					t.Errorf("%s has the axes %q", c, s.Axes)
				}
			}
			if len(c.Inputs) != len(c.Stage.Inputs) {
				t.Errorf("%s has %d inputs, want %d", c, len(c.Inputs), len(c.Stage.Inputs))
			}
			for k, in := range c.Inputs {
				if len(in.Edges) == 0 && !c.Stage.Inputs[k].Optional {
					t.Errorf("%s: the input %s is empty", c, c.Stage.Inputs[k].Name)
				}
				for i, e := range in.Edges {
					if e.From.Index >= c.Index {
						t.Errorf("%s comes before %s", c, e.From)
					}
					to, got := c.Stage.Inputs[k], e.From.Stage.Outputs[e.Port].Type
					if to.Accepts = nil; !to.Takes(got) {
						t.Errorf("%s: %s hands %s to %s", c, e.From, got.Name, to.Type.Name)
					}
					if i > 0 && compareCoord(in.Edges[i-1].Coord, e.Coord) >= 0 {
						t.Errorf("%s: edges in the order %v, %v", c, in.Edges[i-1].Coord, e.Coord)
					}
				}
			}
		}
	}
	if n != len(p.Cells) {
		t.Errorf("%d cells in steps, %d in the plan", n, len(p.Cells))
	}
}

func paramsOf[P any](t *testing.T, p *Plan, cell string) P {
	t.Helper()
	for _, c := range p.Cells {
		if c.String() == cell {
			v, ok := c.Params.(*P)
			if !ok {
				t.Fatalf("%s has the parameters %T", cell, c.Params)
			}
			return *v
		}
	}
	t.Fatalf("no cell %s", cell)
	panic("unreachable")
}

func TestParameters(t *testing.T) {
	text := `name: x
seed: 18446744073709551615
axes:
  model:
    small: {size: 32, mean: [0.1, 0.2, 3], preset: half}
    large: {size: 64, mean: [1], preset: imagenet}
  share: [0.5, 1, 1.0, 2e-3]
  domain: [a, b]
  method:
    ig: {uses: attribute/integrated-gradients, with: {steps: 10, alpha: "${share}"}}
    s: {uses: attribute/saliency, with: {target: "7"}}
stages:
  images: {uses: dataset/shapes, matrix: [model, domain], with: {size: "${model.size}", domain: "${domain}"}}
  model: {uses: model/onnx, matrix: [model], with: {mean: "${model.mean}", preset: "${model.preset}", path: "nets/${model}-${model.size}.onnx"}}
  table: {uses: report/table, matrix: [domain], in: {values: predict.scores}, over: [model], with: {rows: [x, "${domain}", "a ${domain}"], columns: ["${domain}"], mark: 3}}
  predict: {uses: model/predict, in: {model: model, images: images}}
  maps:
    uses: "${method}"
    matrix: [method, share]
    in: {model: model, images: images}
    with: {target: label, output: probability}
    when:
      - {if: {method: ig, share: [1, 2e-3]}, with: {steps: 20, layer: "${domain}"}}
      - {if: {model: large}, with: {reduce: none, output: logit}}
publish: [table, maps]
`
	text = strings.Replace(text, "matrix: [domain], in: {values: predict.scores}",
		"in: {values: predict.scores}", 1)
	p := mustParse(t, paperCatalog(), text,
		Overrides{Set: []string{"maps.with.steps=30", "images.with.seed=5", "axes.model.small.size=48"}})
	checkPlan(t, p)
	if p.Seed != 1<<64-1 {
		t.Errorf("seed %d", p.Seed)
	}
	if got, want := paramsOf[shapesParams](t, p,
		"images[domain=b,model=small]"), (shapesParams{Count: 64, Size: 48, Seed: 5, Dom: 'b'}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := paramsOf[onnxParams](t, p,
		"model[model=small]"), (onnxParams{Path: "nets/small-48.onnx", Preset: "half",
		Mean: []float64{0.1, 0.2, 3}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := paramsOf[tableParams](t, p,
		"table[domain=b]"), (tableParams{Rows: []string{"x", "b", "a b"}, Columns: []string{"b"},
		Mark: "3"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for cell, want := range map[string]igParams{
		"maps[domain=a,method=ig,model=small,share=0.5]": {attrParams{"label", "input", "probability",
			"sum"}, 30, 0.5},
		"maps[domain=b,method=ig,model=small,share=1]": {attrParams{"label", "b", "probability", "sum"},
			30, 1},
		"maps[domain=b,method=ig,model=small,share=1.0]": {attrParams{"label", "input", "probability",
			"sum"}, 30, 1},
		"maps[domain=b,method=ig,model=large,share=2e-3]": {attrParams{"label", "b", "logit", "none"}, 30,
			0.002},
	} {
		if got := paramsOf[igParams](t, p, cell); got != want {
			t.Errorf("%s: got %+v, want %+v", cell, got, want)
		}
	}
	if got, want := paramsOf[absParams](t, p,
		"maps[domain=a,method=s,model=large,share=1]"), (absParams{attrParams{"7", "input", "logit", "none"},
		false}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	checkReadBack(t, p, "")
	// Without --set, when wins over the choice.
	p = mustParse(t, paperCatalog(), text, Overrides{})
	if got := paramsOf[igParams](t, p, "maps[domain=a,method=ig,model=small,share=1]").Steps; got != 20 {
		t.Errorf("%d steps, want 20", got)
	}
	if got := paramsOf[igParams](t, p, "maps[domain=a,method=ig,model=small,share=0.5]").Steps; got != 10 {
		t.Errorf("%d steps, want 10", got)
	}
}

func TestPathsAreRelativeToWhereTheyStand(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("base/b.yaml", `name: base
seed: 1
axes:
  model: {one: {path: nets/one.onnx}, two: {path: two.onnx}}
stages:
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}", mean: [1, 2]}}
  images: {uses: dataset/folder, with: {path: in/base, size: 32}}
publish: [model]
`)
	write("exp/x.yaml", `extends: ../base/b.yaml
name: x
axes:
  model: {two: {path: ../nets/./two.onnx}, three: {path: /abs/three.onnx}, four: {root: data}}
stages:
  model: {with: {mean: [3]}, when: [{if: {model: four}, with: {path: "${model.root}/m.onnx"}}]}
  images: {with: {size: 64}}
publish: [images]
`)
	text, _ := os.ReadFile(filepath.Join(dir, "exp/x.yaml"))
	write("exp/x.yaml",
		strings.Replace(string(text), "four: {root: data}", "four: {root: data, path: unused}", 1))
	p, err := Load(filepath.Join(dir, "exp/x.yaml"), paperCatalog(), Overrides{
		Set: []string{"axes.model.one.path=given.onnx", "axes.model.four.root=r"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "x" || p.Seed != 1 || len(p.Publish) != 1 || p.Publish[0].Name != "images" {
		t.Errorf("got %s, seed %d, publishing %v", p.Name, p.Seed, p.Publish)
	}
	for cell, want := range map[string]string{
		"model[model=one]": "given.onnx", "model[model=two]": filepath.Join(dir, "nets/two.onnx"),
		"model[model=three]": "/abs/three.onnx", "model[model=four]": "r/m.onnx",
	} {
		got := paramsOf[onnxParams](t, p, cell)
		if got.Path != want || !slices.Equal(got.Mean, []float64{3}) {
			t.Errorf("%s: got %+v, want the path %s and the mean 3", cell, got, want)
		}
	}
	if got, want := paramsOf[folderParams](t, p,
		"images"), (folderParams{Path: filepath.Join(dir, "base/in/base"), Size: 64}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	text = p.Resolved()
	if strings.Contains(string(text), dir) || strings.Contains(string(text), "/abs") {
		t.Errorf("absolute paths in\n%s", text)
	}
	for _, want := range []string{"path: given.onnx", "path: ../nets/./two.onnx", "path: three.onnx",
		"path: in/base"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestExtends(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"two.yaml": "extends: three.yaml\n",
		"bad.yaml": "a: {b: ${c}}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"two.yaml":  "a file that others extend can't extend another",
		"none.yaml": `the file "none.yaml" can't be read`,
		".":         `the file "." can't be read: a folder, not a regular file`,
		"bad.yaml":  "a reference inside",
	} {
		_, err := Parse("x.yaml", []byte("extends: "+file+"\nname: x\nstages: {a: {uses: dataset/shapes}}\n"),
			dir, paperCatalog(), Overrides{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("extends: %s reports\n%v\nwant %s", file, err, want)
		}
	}
}

func TestImplied(t *testing.T) {
	text := `name: x
axes:
  model: {a: {path: a.onnx}, b: {path: b.onnx}}
  method:
    s: {uses: attribute/saliency}
    r: {uses: attribute/random, with: {target: label}}
  values: [magnitude, signed]
stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}"}}
  mosaics: {uses: mosaic/derived, in: {model: model, images: images}}
  steps: {uses: perturb/derived, in: {model: model, images: images}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  again: {uses: attribute/saliency, in: {model: model, images: steps}}
  wired: {uses: attribute/saliency, in: {model: model, images: mosaics, targets: mosaics.targets}}
  curves: {uses: perturb/deletion, matrix: [values], in: {model: model, images: images, maps: maps}, with: {values: "${values}"}}
  more: {uses: perturb/insertion, in: {model: model, images: images, maps: maps}, when: [{if: {method: s}, with: {values: signed}}], store: none}
  sheet: {uses: fuse/sheet, in: {maps: maps, images: images, model: model}, over: [method, model]}
  pair: {uses: fuse/ranked, in: {maps: maps}, over: [method]}
publish: [sheet, pair, curves, more, again, wired]
`
	c := paperCatalog()
	fake(c, "fuse/sheet", stages.Whole, "maps, images, model, targets?", "figure", noParams{})
	fake(c, "mosaic/derived", stages.Expand, "model, images", "images, targets", noParams{})
	fake(c, "perturb/derived", stages.Each, "model, images, targets?", "images, targets", noParams{})
	fake(c, "fuse/ranked", stages.Whole, "ranked", "figure", rankParams{"magnitude"})
	p := mustParse(t, c, text, Overrides{})
	checkPlan(t, p)
	implied := map[string][]string{}
	declared := 0
	for _, s := range p.Steps {
		if !s.Implied {
			declared++
			continue
		}
		for _, c := range s.Cells {
			implied[s.Name] = append(implied[s.Name], CoordString(c.Coord))
			if len(s.Axes) != len(c.Coord) {
				t.Errorf("%s has the axes %q", c, s.Axes)
			}
		}
	}
	if declared != 11 {
		t.Errorf("%d declared steps", declared)
	}
	want := map[string][]string{
		// maps[method=s], again, steps, curves and sheet share them: they are told of the same images.
		"targets~model~images":              {"model=a", "model=b"},
		"targets~model~images~target=label": {"model=a", "model=b"},
		"ranks~maps": {"method=r,model=a", "method=r,model=b", "method=s,model=a",
			"method=s,model=b"},
		"ranks~maps~values=signed": {"method=r,model=a", "method=r,model=b", "method=s,model=a",
			"method=s,model=b"},
	}
	if d := cmp.Diff(want, implied); d != "" {
		t.Errorf("implied cells −want +got\n%s", d)
	}
	for step, want := range map[string]string{
		"again": "model=a | model model[model=a].model | images steps[model=a].images | targets " +
			"targets~model~images[model=a].targets\n" +
			"model=b | model model[model=b].model | images steps[model=b].images | targets " +
			"targets~model~images[model=b].targets\n",
		"sheet": " | maps (method=r,model=a)maps[method=r,model=a].maps " +
			"(method=r,model=b)maps[method=r,model=b].maps" +
			" (method=s,model=a)maps[method=s,model=a].maps (method=s,model=b)maps[method=s,model=b].maps " +
			"| images images.images" +
			" | model (model=a)model[model=a].model (model=b)model[model=b].model" +
			" | targets (model=a)targets~model~images[model=a].targets " +
			"(model=b)targets~model~images[model=b].targets\n",
		"pair": "model=a | maps (method=r)ranks~maps[method=r,model=a].ranks " +
			"(method=s)ranks~maps[method=s,model=a].ranks\n" +
			"model=b | maps (method=r)ranks~maps[method=r,model=b].ranks " +
			"(method=s)ranks~maps[method=s,model=b].ranks\n",
	} {
		if d := cmp.Diff(want, stepText(t, p, step)); d != "" {
			t.Errorf("%s −want +got\n%s", step, d)
		}
	}
	if got := paramsOf[predictParams](t, p,
		"targets~model~images~target=label[model=a]").Target; got != "label" {
		t.Errorf("the implied stage explains %q", got)
	}
	// What nobody wrote must not change with the order of what somebody wrote.
	lines := strings.SplitAfter(text, "\n")
	slices.Reverse(lines[8:19])
	q := mustParse(t, c, strings.Join(lines, ""), Overrides{})
	a, b := strings.Split(p.graphText(), "\n"), strings.Split(q.graphText(), "\n")
	slices.Sort(a)
	slices.Sort(b)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("the order of stages changes cells:\n%s", d)
	}
}

func TestImpliedStagesThatDontExist(t *testing.T) {
	ds := diagsOf(t, paperCatalog().without("model/predict"), base+"publish: [maps]\n", Overrides{})
	if len(ds) != 2 || !strings.Contains(ds[0].Msg, `needs the stage "model/predict", which doesn't exist`) ||
		ds[0].Line != 10 {
		t.Errorf("got %v", ds)
	}
	c := paperCatalog()
	fake(c, "model/predict", 0, "model, images, targets?", "targets", predictParams{})
	ds = diagsOf(t, c, base+"publish: [maps]\n", Overrides{})
	if len(ds) != 1 || !strings.Contains(ds[0].Msg, "imply each other without end") {
		t.Errorf("got %v", ds)
	}
}

func TestOverrides(t *testing.T) {
	text := base +
		"  pic: {uses: score/fit, in: {model: model, images: images, maps: maps}}\n  all: {uses: " +
		"fuse/meta-rank, in: {scores: {k: {sic: pic.sic, aic: pic.aic}}}, over: all}\npublish: [all]\n"
	p := mustParse(t, paperCatalog(), text, Overrides{
		Only: []string{"method=s", "model=a", "k=aic", "method=r"}, Limit: 3,
		Set: []string{"seed=9", "maps.with.reduce=none", "stages.images.with.size=32", "maps.store=none",
			"images.with.domain=b"},
	})
	checkPlan(t, p)
	want := " | scores (k=aic,method=r,model=a)pic[method=r,model=a].aic " +
		"(k=aic,method=s,model=a)pic[method=s,model=a].aic\n"
	if d := cmp.Diff(want, stepText(t, p, "all")); d != "" {
		t.Error(d)
	}
	if p.Limit != 3 || p.Seed != 9 || p.stepCalled(t, "maps").Keep ||
		paramsOf[shapesParams](t, p, "images") != (shapesParams{64, 32, 0, 'b'}) {
		t.Errorf("overrides without effect: %+v", p)
	}
	narrowed := []string{
		"seed set to 9", "maps.with.reduce set to none", "stages.images.with.size set to 32",
		"maps.store set to none", "images.with.domain set to b",
		"only model a (1 of 2)", "only method s, r (2 of 2)", "only k aic (1 of 2)",
		"at most 3 items from each source",
	}
	if d := cmp.Diff(narrowed, p.Narrowed); d != "" {
		t.Error(d)
	}
	checkReadBack(t, p, "", "method=s,r", "model=a", "k=aic")
	p = mustParse(t, paperCatalog(), text, Overrides{Set: []string{"model.with.path=/home/me/secret/x.onnx"}})
	if strings.Contains(strings.Join(p.Narrowed, " "), "secret") {
		t.Errorf("a private path in %q", p.Narrowed)
	}
	for _, tc := range []struct {
		o    Overrides
		want string
	}{
		{Overrides{Set: []string{"maps.with.steps"}},
			"--set maps.with.steps: an assignment is a path, = and a value\nhint: write --set " +
				"maps.with.steps=64"},
		{Overrides{Set: []string{"map.with.abs=true"}},
			`--set map.with.abs=true: map.with.abs: no stage is called "map"` +
				"\nhint: did you mean \"maps\"?"},
		{Overrides{Set: []string{"maps.with.abc=true"}},
			`--set maps.with.abc=true: maps.with.abc: unknown parameter "abc" of attribute/saliency` +
				"\nhint: did you mean \"abs\"?"},
		{Overrides{Set: []string{"maps.with.abs=7"}},
			"--set maps.with.abs=7: maps.with.abs: 7 is not true or false"},
		{Overrides{Set: []string{"maps.in.model=x"}},
			`--set maps.in.model=x: maps.in.model: "in.model" of a stage can't be set from the command line` +
				"\nhint: write --set maps.with.parameter=value"},
		{Overrides{Set: []string{"axes.methods.s.with.abs=true"}},
			`--set axes.methods.s.with.abs=true: axes.methods.s.with.abs: no axis is called "methods"` +
				"\nhint: did you mean \"method\"?"},
		{Overrides{Set: []string{"axes.method.q.with.abs=true"}}, `has no id "q" with fields`},
		{Overrides{Set: []string{"axes.method.q=7"}}, `has no id "q" with fields`},
		{Overrides{Set: []string{"axes.method.s.with.abz=true"}},
			`unknown parameter "abz" of attribute/saliency`},
		{Overrides{Set: []string{"images.with.size=[1"}}, "--set images.with.size=[1: not YAML"},
		{Overrides{Set: []string{"images.with.size=!!int 3"}}, "the tag !!int isn't plain data"},
		{Overrides{Only: []string{"method"}},
			"--only method: a choice is an axis, = and ids\nhint: write --only method=ig,saliency"},
		{Overrides{Only: []string{"methods=s"}},
			`--only methods=s: no axis is called "methods"` + "\nhint: did you mean \"method\"?"},
		{Overrides{Only: []string{"method=s,q"}}, `--only method=s,q: the axis "method" has no id "q"`},
		{Overrides{Limit: -1}, "--limit -1: a limit is a positive number"},
	} {
		_, err := Parse("x.yaml", []byte(text), "", paperCatalog(), tc.o)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v reports\n%v\nwant\n%s", tc.o, err, tc.want)
		}
	}
}

func TestSetAddsIDsAndLines(t *testing.T) {
	p := mustParse(t, paperCatalog(), base+"publish: [maps]\n", Overrides{Set: []string{
		"axes.method.t={uses: attribute/saliency, with: {abs: false}}",
		"axes.method.r={uses: attribute/saliency}", "maps.only=[{method: [r, t], model: a}]"}})
	var got []string
	for _, c := range p.Cells {
		if c.Step.Name == "maps" {
			got = append(got, c.String())
		}
	}
	if d := cmp.Diff([]string{"maps[method=r,model=a]", "maps[method=t,model=a]"}, got); d != "" {
		t.Error(d)
	}
	p = mustParse(t, paperCatalog(), base+"publish: [maps]\n", Overrides{Set: []string{
		"maps.exclude=[{method: r}]"}})
	if n := len(p.Cells); n != 1+2+2+2 {
		t.Errorf("%d cells without the method r: %s", n, p.graphText())
	}
}

func TestDiagText(t *testing.T) {
	ds := diagsOf(t, paperCatalog(),
		"name: x\nstages:\n  a:\n    uses: dataset/shapes\n    with: {sise: 32}\n  b: {uses: "+
			"dataset/shapez}\npublish: [a, b]\n", Overrides{})
	want := `x.yaml:5:12: stages.a.with: unknown parameter "sise" of dataset/shapes
    5 |     with: {sise: 32}
      |            ^
hint: did you mean "size"?
x.yaml:6:13: stages.b.uses: unknown stage "dataset/shapez"
    6 |   b: {uses: dataset/shapez}
      |             ^
hint: did you mean "dataset/shapes"?
2 problems`
	if d := cmp.Diff(want, ds.Error()); d != "" {
		t.Errorf("−want +got\n%s", d)
	}
	long := Diag{File: "f", Line: 3, Col: 301, Msg: "m",
		Text: strings.Repeat("é", 300) + "\x1b" + strings.Repeat("b", 300)}
	lines := strings.Split(long.String(), "\n")
	if caret := len([]rune(lines[2])) - 1; []rune(lines[1])[caret] != '·' ||
		len([]rune(lines[1])) > excerptWidth+10 {
		t.Errorf("the caret of\n%s\nis not below the column", long)
	}
	if got := (Diag{File: "f", Line: 1, Col: 3, Msg: "m",
		Text: "\t\tx"}).String(); got != "f:1:3: m\n    1 | \t\tx\n      | \t\t^" {
		t.Errorf("got %q", got)
	}
}

func TestWarnings(t *testing.T) {
	text := `name: x
axes: {model: [a, b], idle: [x]}
stages:
  model: {uses: model/onnx, matrix: [model], only: [{model: a}]}
  lost: {uses: model/difull, in: {model: model}, exclude: [{model: b}], missing: drop}
  gone: {uses: model/difull, in: {model: model}, exclude: [{model: a}]}
publish: [model, gone]
`
	p := mustParse(t, paperCatalog(), text, Overrides{})
	var got []string
	for _, d := range p.Warnings {
		got = append(got, fmt.Sprintf("%d: %s", d.Line, d.Msg))
	}
	want := []string{
		`2: nothing uses the axis "idle"`, `5: nothing uses the stage "lost"`,
		`5: this line matches no cell of "lost"`,
		"5: missing: drop means nothing without over", `6: no combination of the stage "gone" is left`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	stacked := mustParse(t, paperCatalog(), strings.Replace(text, "{model: model}, exclude: [{model: a}]",
		"{model: {idle: {x: model}}}, exclude: [{model: a}]", 1), Overrides{})
	if strings.Contains(fmt.Sprint(stacked.Warnings), `the axis "idle"`) {
		t.Errorf("the axis of a stack isn't used: %v", stacked.Warnings)
	}
	p = mustParse(t, paperCatalog(), text, Overrides{Only: []string{"model=a"}})
	if len(p.Warnings) != 3 {
		t.Errorf("a narrowed experiment warns of %v", p.Warnings)
	}
}

// TestFits tests that an error of Fits is a diagnostic where the implementation is named, or of the parameter
// that it is about, and that Fits isn't called with cells that are wrong.
func TestFits(t *testing.T) {
	text := `name: x
axes:
  method: {a: {uses: dataset/shapes}, b: {uses: dataset/shapes, with: {count: 3}}, c: {uses: dataset/shapes}}
stages:
  s: {uses: "${method}", matrix: [method]}
  wrong: {uses: dataset/shapes, with: {count: none}}
publish: [s, wrong]
`
	ds := diagsOf(t, paperCatalog(), text, Overrides{Fits: func(c *Cell) error {
		if c.Coord == nil {
			t.Errorf("called with %v", c)
		} else if c.Coord[0].ID == "b" {
			return stages.BadName("count", "fore", []string{"four", "eleven"}, "too few")
		} else if c.Coord[0].ID == "c" {
			return stages.BadField("size", "too small")
		}
		return errors.New("no")
	}})
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprintf("%d: %s: %s (%s)", d.Line, d.Path, d.Msg, d.Hint))
	}
	want := []string{
		"3: axes.method.a.uses: dataset/shapes: no ()",
		`3: axes.method.b.with.count: too few (did you mean "four"?)`,
		"3: axes.method.c.uses: size: too small (it's a parameter of dataset/shapes)",
	}
	if len(got) != 4 || !slices.Equal(got[:3], want) {
		t.Errorf("%q, want %q and one more", got, want)
	}
}

func TestTooManyCells(t *testing.T) {
	var axes, names []string
	for i := range 80 {
		axes = append(axes, fmt.Sprintf("  a%d: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", i))
		names = append(names, fmt.Sprintf("a%d", i))
	}
	for n, want := range map[int]string{7: "the experiment has more than 1000000 cells",
		80: "too many combinations to count"} {
		text := "name: x\naxes:\n" + strings.Join(axes[:n], "") +
			"stages:\n  s: {uses: dataset/shapes, matrix: [" + strings.Join(names[:n], ", ") + "]}\n" +
			"  t: {uses: model/predict, in: {images: s, model: m}}\n  m: {uses: model/onnx}\n  u: {uses: " +
			"fuse/meta-rank, in: {scores: {k: {a: t, b: t}}}, over: all}\npublish: [u]\n"
		ds := diagsOf(t, paperCatalog(), text, Overrides{})
		if len(ds) == 0 || !strings.Contains(ds.Error(), want) {
			t.Errorf("%d axes: got %v, want %s", n, ds, want)
		}
	}
}
