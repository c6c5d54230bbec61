package plan

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A parameter that names axes is refused where it stands if over doesn't collapse them.
func TestAxisParameters(t *testing.T) {
	type params struct {
		Rank string   `yaml:"rank" axis:"maps" doc:"axis"`
		Line string   `yaml:"line" axis:"maps,optional" doc:"axis"`
		Rows []string `yaml:"rows" axis:"maps" doc:"axes"`
	}
	c := paperCatalog()
	fake(c, "report/named", stages.Whole, "maps", "figure", params{Line: "method"})
	head, tail, _ := strings.Cut(base, "stages:\n")
	for _, tc := range []struct{ over, with, want, hint string }{
		{"[method]", "rank: method, rows: [method]", "", ""},
		{"all", "rank: method, rows: [model, method]", "", ""},
		{"[method]", "", "", ""}, // the only axis
		{"all", "rank: methd",
			`11:18: stages.named.with.rank: rank names the axis "methd", which over doesn't collapse on ` +
				`the input "maps"`, `did you mean "method"?`},
		{"all", "rank: model, rows: [method, modle]",
			`11:40: stages.named.with.rows[1]: rows names the axis "modle"`, `did you mean "model"?`},
		{"[method]", "rank: model", `11:18: stages.named.with.rank: rank names the axis "model"`,
			"write over: [method, model]"},
		{"[method]", "rank: method, line: model",
			`11:32: stages.named.with.line: line names the axis "model"`, "write over: [method, model]"},
		{"[model]", "rank: model", `9:11: stages.named.uses: line: line names the axis "method"`,
			"write over: [model, method]"}, // by default
		{"all", "", "9:11: stages.named.uses: rank: rank is required: over collapses 2 axes",
			"rank is one of method, model"},
		{"[]", "rank: method", `11:18: stages.named.with.rank: rank names the axis "method"`,
			"write over: [method]"},
		{"[]", "", "9:11: stages.named.uses: rank: rank is required, and over collapses no axis",
			"it's a parameter of report/named"},
	} {
		text := head + "stages:\n  named:\n    uses: report/named\n    in: {maps: maps}\n    with: {" +
			tc.with + "}\n    over: " + tc.over + "\n" + tail + "publish: [named]\n"
		ds := diagsOf(t, c, text, Overrides{})
		switch {
		case tc.want == "" && len(ds) == 0:
		case tc.want == "" || len(ds) != 1 || !strings.HasPrefix(ds[0].String(), "x.yaml:"+tc.want) ||
			ds[0].Hint != tc.hint:
			t.Errorf("over %s, with %s: got %v, want %s", tc.over, tc.with, ds, tc.want)
		}
	}
}
