package webpage

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
)

// TestDirections: areas under the curves of two orders are one score whose cells are better high or low, each
// by its own order.
func TestDirections(t *testing.T) {
	cells, items := "", "cell/item,x,y,z\n"
	add := func(order, method, direction string, values ...float64) {
		cell := fmt.Sprintf("auc[method=%s,order=%s]", method, order)
		sum := 0.0
		items += `"` + cell + `"`
		for _, v := range values {
			sum += v
			items += fmt.Sprintf(",%g", v)
		}
		items += "\n"
		quoted, _ := json.Marshal(cell)
		cells += fmt.Sprintf(`{"cell":%s,"definition":"0123456789abcdef","direction":%q,"mean":%g,"n":3,`+
			`"score":"scores","tolerance":0,"undefined":0}`+"\n", quoted, direction, sum/3)
	}
	add("lerf", "high", "higher", 8, 9, 10)
	add("lerf", "middle", "higher", 8, 8.5, 10.2)
	add("lerf", "low", "higher", 1, 2, 3)
	add("morf", "high", "lower", 8, 9, 10)
	add("morf", "middle", "lower", 1.1, 1.8, 3.2)
	add("morf", "low", "lower", 1, 2, 3)
	add("none", "high", "", 8, 9, 10)
	add("none", "low", "", 8, 9, 10)
	dir := folder(t, map[string]string{"cells/auc.jsonl": cells, "items/auc.csv": items})
	v, err := publish.ReadVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(Source{Version: v}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Scores) != 1 {
		t.Fatalf("%d scores, not one", len(m.Scores))
	}
	ways := map[string]stages.Direction{"lerf": stages.Higher, "morf": stages.Lower}
	for _, c := range m.Scores[0].Cells {
		if want := ways[c.IDs[1]]; c.Direction != want {
			t.Errorf("%s: better is %q, not %q", c.Cell, c.Direction, want)
		}
	}
}
