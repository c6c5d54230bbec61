package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// epochs has maps of two methods at three epochs, and a stage that compares them.
func epochs(compared string) string {
	return `name: x
axes:
  method: {s: {uses: attribute/saliency}, r: {uses: attribute/random}}
  epoch: [e1, e2]
  at: [e1, e2]
stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, matrix: [epoch], with: {path: "${epoch}.onnx"}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  compared: ` + compared + `
publish: [compared]
`
}

func pairCatalog() fakeCatalog {
	c := paperCatalog()
	fake(c, "score/pair", stages.Each, "maps, other:maps", "scores", noParams{})
	return c
}

func TestEdgeOfCells(t *testing.T) {
	for _, tc := range []struct{ name, compared, want string }{
		{"two epochs", `{uses: score/pair, in: {maps: "maps[epoch=e1]", other: "maps[epoch=e2].maps"}}`,
			"method=s | maps maps[epoch=e1,method=s].maps | other maps[epoch=e2,method=s].maps\n" +
				"method=r | maps maps[epoch=e1,method=r].maps | other maps[epoch=e2,method=r].maps\n"},
		{"every epoch with the first",
			`{uses: score/pair, in: {maps: maps, other: "maps[epoch=e1]"}, only: [{method: s}]}`,
			"epoch=e1,method=s | maps maps[epoch=e1,method=s].maps | other maps[epoch=e1,method=s].maps" +
				"\nepoch=e2,method=s | maps maps[epoch=e2,method=s].maps | other " +
				"maps[epoch=e1,method=s].maps\n"},
		{"one cell",
			`{uses: score/pair, in: {maps: "maps[epoch=e1,method=s]", other: "maps[method=r,epoch=e1]"}}`,
			" | maps maps[epoch=e1,method=s].maps | other maps[epoch=e1,method=r].maps\n"},
		{"in a stack of its own axis",
			`{uses: report/sheet, over: all, in: {images: images,
    maps: {epoch: {e2: "maps[epoch=e1]", e1: "maps[epoch=e2]"}}}}`,
			" | maps (epoch=e1,method=r)maps[epoch=e2,method=r].maps " +
				"(epoch=e1,method=s)maps[epoch=e2,method=s].maps " +
				"(epoch=e2,method=r)maps[epoch=e1,method=r].maps " +
				"(epoch=e2,method=s)maps[epoch=e1,method=s].maps" +
				" | images images.images\n"},
	} {
		p := mustParse(t, pairCatalog(), epochs(tc.compared), Overrides{})
		checkPlan(t, p)
		if d := cmp.Diff(tc.want, stepText(t, p, "compared")); d != "" {
			t.Errorf("%s: −want +got\n%s", tc.name, d)
		}
	}
}

func TestBadEdgeOfCells(t *testing.T) {
	for _, tc := range []struct{ edge, want, hint string }{
		{"maps[epoch=e1", `"maps[epoch=e1" is not an edge`, "write stage[axis=id]"},
		{"maps[]", "is not an edge", "write stage[axis=id]"},
		{"maps[epoch=e1]maps", "is not an edge", "write stage[axis=id]"},
		{"maps[epoch=e1].", "is not an edge", "write stage[axis=id]"},
		{"maps[epoch]", `"epoch" of the edge isn't axis=id`, "write maps[axis=id]"},
		{"map[epoch=e1]", `no stage is called "map"`, `did you mean "maps"?`},
		{"maps[epochs=e1]", `x.yaml:10:56: stages.compared.in.other: the stage "maps" has no axis "epochs"`,
			`did you mean "epoch"?`},
		{"maps[at=e1]", `the stage "maps" has no axis "at"`, "its axes: epoch, method"},
		{"maps[epoch=e3]", `"e3"`, `did you mean "e`},
		{"maps[epoch=e1,epoch=e2]", `the axis "epoch" is fixed twice`, "one id"},
		{"images[epoch=e1]", `the stage "images" has no axes`, "write images"},
		{"maps[epoch=e1].map", `has no output "map"`, "maps.maps"},
	} {
		text := epochs(`{uses: score/pair, in: {maps: maps, other: "` + tc.edge + `"},
    exclude: [{method: r}]}`)
		found := false
		ds := diagsOf(t, pairCatalog(), text, Overrides{})
		for _, d := range ds {
			found = found || strings.Contains(d.String(), tc.want) && strings.Contains(d.Hint, tc.hint)
		}
		if !found {
			t.Errorf("%s: no %q with the hint %q, but\n%v", tc.edge, tc.want, tc.hint, ds)
		}
	}
}
