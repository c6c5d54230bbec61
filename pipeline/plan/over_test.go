package plan

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestOverOnItemwiseStages holds which edges an itemwise stage with over gets, which input its items come
// from, and what is refused, where.
func TestOverOnItemwiseStages(t *testing.T) {
	c := paperCatalog()
	type drawParams struct {
		Draw string `yaml:"draw" doc:"axis" axis:"maps"`
	}
	fake(c, "score/spread", stages.Each, "maps*, original:maps?, labels?", "scores", drawParams{})
	fake(c, "score/split", stages.Expand, "maps*", "scores", noParams{})
	const more = base + "  one: {uses: attribute/saliency, in: {model: model, images: images}}\n" +
		"  s: {uses: score/spread, IN}\n"
	for _, tc := range []struct {
		name, in string
		want     string // the coordinates of maps in the first cell, or a diagnostic
		primary  int
	}{
		{"all inputs collapsed", "in: {maps: maps}, over: [model], with: {draw: model}",
			"model=a model=b", -1},
		{"one isn't", "in: {maps: maps, labels: images.labels}, over: all, with: {draw: method}",
			"method=r,model=a method=r,model=b method=s,model=a method=s,model=b", 2},
		{"without over", "in: {maps: maps}, with: {draw: model}",
			`x.yaml:12:58: stages.s.with.draw: draw names the axis "model", which over doesn't ` +
				`collapse on the input "maps"`, 0},
		{"an axis nobody has", "in: {maps: maps}, over: [nobody]",
			`x.yaml:12:52: stages.s.over[0]: no axis is called "nobody"`, 0},
		{"an axis that no input carries", "in: {maps: one}, over: [method]",
			`x.yaml:12:50: stages.s.over: the inputs of "s" have no axis "method"`, 0},
		{"an input that takes one cell", "in: {maps: maps, original: maps}, over: [model]",
			`x.yaml:12:67: stages.s.over: the input "original" of score/spread takes the items of one ` +
				`cell`, 0},
		{"expand", "in: {maps: maps}, over: [model]",
			`x.yaml:12:50: stages.s.over: the input "maps" of score/split can't be collapsed: an expand ` +
				`stage makes several items of one`, 0},
	} {
		text := strings.Replace(more, "IN", tc.in, 1)
		if tc.name == "expand" {
			text = strings.Replace(text, "score/spread", "score/split", 1)
		}
		if strings.HasPrefix(tc.want, "x.yaml") {
			ds := diagsOf(t, c, text+"publish: [s]\n", Overrides{})
			if len(ds) == 0 || !strings.HasPrefix(ds.Error(), tc.want) {
				t.Errorf("%s: got %v, want %s", tc.name, ds, tc.want)
			}
			continue
		}
		p := mustParse(t, c, text+"publish: [s]\n", Overrides{})
		cell := p.stepCalled(t, "s").Cells[0]
		var at []string
		for _, e := range cell.Inputs[0].Edges {
			at = append(at, CoordString(e.Coord))
		}
		if got := strings.Join(at, " "); got != tc.want || cell.Primary() != tc.primary {
			t.Errorf("%s: got %q and the primary input %d", tc.name, got, cell.Primary())
		}
	}
}
