package plan

import (
	"strings"
	"testing"
)

// TestAxisOfNames holds that a list of names that can't be ids, such as those of a net's values, gets the
// lines that have them.
func TestAxisOfNames(t *testing.T) {
	ds := diagsOf(t, paperCatalog(),
		"name: x\naxes: {layer: [input, /layer2/Relu]}\nstages: {images: {uses: dataset/shapes}}\npublish: "+
			"[]\n", Overrides{})
	for _, d := range ds {
		if strings.Contains(d.Msg, "/layer2/Relu") {
			if want := `layer: {first: {at: "/layer2/Relu"}}, and use ${layer.at}`; !strings.Contains(d.Hint,
				want) {
				t.Errorf("the hint is %q, want %q", d.Hint, want)
			}
			return
		}
	}
	t.Errorf("no diagnostic of it: %v", ds)
}
