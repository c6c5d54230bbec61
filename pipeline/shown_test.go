package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// show writes the order of the ids that it is told to show.
func (l *lab) show() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/show", Doc: "ids in order", Version: 1, Relation: stages.Whole, Ordered: true,
		Inputs:  []stages.Port{{Name: "scores", Type: stages.Scores}},
		Outputs: []stages.Port{{Name: "text", Type: stages.Text}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			var places []string
			for _, d := range e.Ports["scores"] {
				places = append(places, plan.CoordString(d.Coord))
			}
			text := fmt.Appendf(nil, "%v of %v", e.Order, places)
			if e.Labels != nil || e.Families != nil {
				text = fmt.Appendf(text, "%v%v", e.Labels, e.Families)
			}
			e.Set("text", text)
			e.SetFacts("text", stages.Facts{"ext": "md"})
			l.count("show", 1)
			return nil
		},
	})
}

const shownYAML = `
name: shown
axes:
  layer: %s
  net:   {b: {n: 2}, a: {n: 3}}
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, matrix: [layer, net], in: {images: images}, with: {by: "${net.n}"}, exclude: [{layer: middle, net: b}]}
  scores: {uses: lab/add, in: {maps: maps, images: images}}
  fused:  {uses: lab/sum, in: {scores: scores}, over: all}
  shown:  {uses: lab/show, in: {scores: scores}, over: [layer]}
  one:    {uses: lab/show, in: {scores: scores}, only: [{net: a, layer: input}]}
publish: [fused, shown]
`

// Ids are shown in the order in which they're written. Who reorders an axis runs again what shows it, and
// nothing else.
func TestReorderingAnAxisRunsReportsAlone(t *testing.T) {
	l := newLab(t)
	l.items = []string{"x=1", "y=2"}
	res := l.mustRun(fmt.Sprintf(shownYAML, "[input, middle, final]"))
	// Cells are handed over sorted by id, whatever the order.
	for cell, want := range map[string]string{
		"shown[net=a]":           "map[layer:[input middle final]] of [layer=final layer=input layer=middle]",
		"shown[net=b]":           "map[layer:[input final]] of [layer=final layer=input]",
		"one[layer=input,net=a]": "map[] of []",
	} {
		if got := l.text(res, cell); got != want {
			t.Errorf("%s shows %q, want %q", cell, got, want)
		}
	}
	l.want("at first", "sum", 1, "show", 3)
	fused := l.text(res, "fused")

	for _, tc := range []struct {
		layers string
		shown  int
	}{
		{"[final, input, middle]", 2},
		{"[final, middle, input]", 1}, // for b, which has no middle, that's the same
		{"[input, middle, final]", 0},
	} {
		yaml := fmt.Sprintf(shownYAML, tc.layers)
		plan, o := l.outlook(yaml)
		would := 0
		for _, c := range plan.Cells {
			if o.State(c).Kind == pipeline.Runs {
				would++
				if w := o.Why(c); len(w.Changes) != 1 || w.Changes[0].Name != "order of layer" {
					t.Errorf("%s: why %s: %+v", tc.layers, c, w)
				}
			}
		}
		if would != tc.shown {
			t.Errorf("%s: %d cells would run, want %d", tc.layers, would, tc.shown)
		}
		res := l.mustRun(yaml)
		if res.Summary.Executed != tc.shown {
			t.Errorf("%s: %d cells ran, want %d: %v", tc.layers, res.Summary.Executed, tc.shown, l.ran)
		}
		l.want(tc.layers, "show", tc.shown)
		if got := l.text(res, "fused"); got != fused {
			t.Errorf("%s: fused is %q, was %q", tc.layers, got, fused)
		}
		want := strings.NewReplacer("[", "", "]", "", ",", "").Replace(tc.layers)
		if got := l.text(res, "shown[net=a]"); !strings.Contains(got, "layer:["+want+"]") {
			t.Errorf("%s is shown as %q", tc.layers, got)
		}
	}
}

// The order is the file's, through extends and --set, and of the resolved experiment.
func TestWrittenOrder(t *testing.T) {
	l := newLab(t)
	order := func(p *plan.Plan) string {
		return fmt.Sprint(p.Order["layer"], p.Order["net"], p.Order["score"])
	}
	yaml := strings.Replace(fmt.Sprintf(shownYAML, "[input, middle, final]"), "publish: ",
		"  stack: {uses: lab/show, in: {scores: {score: {z: scores, y: scores}}}, over: all}\npublish: ", 1)
	p := l.parse(yaml)
	want := "[input middle final] [b a] [z y]"
	if got := order(p); got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
	again := l.parse(string(p.Resolved()))
	if got := order(again); got != want {
		t.Errorf("resolved, the order is %s, want %s:\n%s", got, want, p.Resolved())
	}
	// Cells in the order of README.md's means.
	var names []string
	for _, c := range again.Cells {
		if c.Step.Name == "maps" {
			names = append(names, plan.CoordString(c.Coord))
		}
	}
	if want := []string{"layer=input,net=b", "layer=input,net=a", "layer=middle,net=a", "layer=final,net=b",
		"layer=final,net=a"}; !slices.Equal(names, want) {
		t.Errorf("cells: %v, want %v", names, want)
	}

	if err := os.WriteFile(filepath.Join(l.dir, "base.yaml"), []byte(yaml), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ axes, want string }{
		// Lists replace; ids that a map adds come after those of the base, which keep their places.
		{"{layer: [final, input, middle], net: {c: {n: 4}, a: {n: 5}}}",
			"[final input middle] [b a c] [z y]"},
		{"{}", want},
	} {
		p, err := plan.Parse("x.yaml", []byte("name: x\nextends: base.yaml\naxes: "+tc.axes+"\n"), l.dir, l,
			plan.Overrides{Set: []string{"axes.net.a.n=7"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := order(p); got != tc.want {
			t.Errorf("%s: the order is %s, want %s", tc.axes, got, tc.want)
		}
	}
}

// Labels and families run again what shows them, and nothing else; without them, keys are as if there were no
// such fields. The stage gets those of the ids that it shows.
func TestLabelsRunReportsAlone(t *testing.T) {
	l := newLab(t)
	l.items = []string{"x=1", "y=2"}
	ids := []string{"input", "middle", "final"}
	yaml := func(layers, nets stages.Names) string {
		fields := func(id string) (list []string) {
			for _, kind := range []string{"label", "family"} {
				if name := layers[kind][id]; name != "" {
					list = append(list, kind+": "+name)
				}
			}
			return list
		}
		var axis []string
		for _, id := range ids {
			axis = append(axis, id+": {"+strings.Join(fields(id), ", ")+"}")
		}
		text := fmt.Sprintf(shownYAML, "{"+strings.Join(axis, ", ")+"}")
		for _, id := range []string{"a", "b"} {
			if name := nets["label"][id]; name != "" {
				text = strings.Replace(text, id+": {n:", id+": {label: "+name+", n:", 1)
			}
		}
		return text
	}
	l.mustRun(yaml(nil, nil))
	l.want("at first", "sum", 1, "show", 3)

	r := rand.New(rand.NewPCG(1, 2))
	known := map[string]bool{} // what each cell was shown with
	with := func(layers stages.Names, ids []string) string {
		var shown []string
		for _, kind := range []string{"label", "family"} {
			for _, id := range ids {
				shown = append(shown, layers[kind][id])
			}
		}
		return fmt.Sprint(ids, shown)
	}
	// The shown cell of b has no middle; the third has no collapsed axis.
	cells := [][]string{ids, {"input", "final"}}
	for _, c := range cells {
		known[with(nil, c)] = true
	}
	for n := range 24 {
		layers, nets := stages.Names{"label": {}, "family": {}}, stages.Names{"label": {}}
		for _, id := range ids {
			if r.IntN(3) == 0 {
				layers["label"][id] = fmt.Sprint("L", id, r.IntN(2))
			}
			if r.IntN(3) == 0 {
				layers["family"][id] = fmt.Sprint("F", r.IntN(2))
			}
		}
		if n%3 == 0 {
			nets["label"]["a"] = fmt.Sprint("net", n)
		}
		want := 0
		for _, c := range cells {
			if key := with(layers, c); !known[key] {
				known[key] = true
				want++
			}
		}
		text := yaml(layers, nets)
		p, o := l.outlook(text)
		for _, c := range p.Cells {
			if o.State(c).Kind != pipeline.Runs {
				continue
			}
			for _, change := range o.Why(c).Changes {
				if !strings.HasPrefix(change.Name, "labels of layer") &&
					!strings.HasPrefix(change.Name, "families of layer") {
					t.Errorf("why %s: %+v", c, change)
				}
			}
		}
		res := l.mustRun(text)
		if res.Summary.Executed != want {
			t.Fatalf("%v: %d cells ran, want %d: %v", layers, res.Summary.Executed, want, l.ran)
		}
		l.want(text, "show", want)
		shows := func(list map[string]string, of []string) string {
			m := map[string]string{}
			for _, id := range of {
				if list[id] != "" {
					m[id] = list[id]
				}
			}
			if len(m) == 0 {
				return "map[]"
			}
			return fmt.Sprint(stages.Names{"layer": m})
		}
		for i, cell := range []string{"shown[net=a]", "shown[net=b]"} {
			want := shows(layers["label"], cells[i]) + shows(layers["family"], cells[i])
			if want = strings.TrimPrefix(want, "map[]map[]"); want == "" {
				want = "]" // of the places alone
			}
			if got := l.text(res, cell); !strings.HasSuffix(got, want) {
				t.Errorf("%s shows %q, want %s at its end", cell, got, want)
			}
		}
	}
}

// A stage that shows a table gets the order and the labels of the ids in it: of the axes that the table's
// maker collapsed. Who reorders or labels these runs again the stage that shows them, and not the maker.
func TestOrderOfTables(t *testing.T) {
	l := newLab(t)
	l.items = []string{"x=1", "y=2"}
	table := stages.New(stages.Def[noParams]{
		Name: "lab/table", Doc: "a table of ids", Version: 1, Relation: stages.Whole,
		Inputs:  []stages.Port{{Name: "scores", Type: stages.Scores}},
		Outputs: []stages.Port{{Name: "table", Type: stages.TableType}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			l.count("table", 1)
			e.Set("table", stages.Table{Keys: []string{"layer"}}.Encode())
			return nil
		},
	})
	show := stages.New(stages.Def[noParams]{
		Name: "lab/show-table", Doc: "ids of a table in order", Version: 1, Relation: stages.Whole,
		Ordered: true,
		Inputs:  []stages.Port{{Name: "table", Type: stages.TableType}},
		Outputs: []stages.Port{{Name: "text", Type: stages.Text}},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			l.count("show", 1)
			e.Set("text", fmt.Appendf(nil, "%v%v", e.Order, e.Labels))
			e.SetFacts("text", stages.Facts{"ext": "md"})
			return nil
		},
	})
	l.stages[table.Name], l.stages[show.Name] = &table, &show
	yaml := func(layers string) string {
		head, _, _ := strings.Cut(fmt.Sprintf(shownYAML, layers), "  fused:")
		return head + "  made: {uses: lab/table, in: {scores: scores}, over: [layer]}\n" +
			"  shown: {uses: lab/show-table, in: {table: made}, over: [net]}\npublish: [shown]\n"
	}
	for _, tc := range []struct {
		layers, want string
		made, shown  int
	}{
		{"[input, middle, final]", "map[layer:[input middle final] net:[b a]]map[]", 2, 1},
		{"[final, input, middle]", "map[layer:[final input middle] net:[b a]]map[]", 0, 1},
		{"{final: {}, input: {label: Input}, middle: {}}",
			"map[layer:[final input middle] net:[b a]]map[layer:map[input:Input]]", 0, 1},
		{"[input, middle, final]", "map[layer:[input middle final] net:[b a]]map[]", 0, 0},
	} {
		res := l.mustRun(yaml(tc.layers))
		l.want(tc.layers, "table", tc.made, "show", tc.shown)
		if got := l.text(res, "shown"); got != tc.want {
			t.Errorf("%s is shown as %q, want %q", tc.layers, got, tc.want)
		}
	}
}
