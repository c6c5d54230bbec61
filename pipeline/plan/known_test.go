package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A knower names ids in claims.
type knower struct {
	Claims []string `yaml:"claims" doc:"ids"`
}

func (p knower) Known(ids map[string][]string) error {
	for _, id := range p.Claims {
		if !slices.Contains(ids["method"], id) {
			return stages.BadName("claims", id, ids["method"], "there is no id %q", id)
		}
	}
	return nil
}

// A parameter that names an unknown id is refused where it stands; one that --only takes away is known.
func TestKnownIDs(t *testing.T) {
	c := paperCatalog()
	fake(c, "report/known", stages.Whole, "maps", "figure", knower{})
	head, tail, _ := strings.Cut(base, "stages:\n")
	text := func(claims string) string {
		return head + "stages:\n  known:\n    uses: report/known\n    in: {maps: maps}\n    over: all\n" +
			"    with: {claims: [" + claims + "]}\n" + tail + "publish: [known]\n"
	}
	if ds := diagsOf(t, c, text("s, r"), Overrides{Only: []string{"method=s"}}); len(ds) > 0 {
		t.Errorf("with --only: %v", ds)
	}
	ds := diagsOf(t, c, text("s, saliency"), Overrides{})
	if len(ds) != 1 || !strings.Contains(ds[0].String(), `with.claims[1]: there is no id "saliency"`) ||
		ds[0].Hint != "there are: s, r" {
		t.Errorf("an unknown id: %v", ds)
	}
}
