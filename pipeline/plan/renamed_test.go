package plan

import (
	"reflect"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A renamed choice is the same parameter under either name: keys digest the former one.
func TestRenamedChoice(t *testing.T) {
	type params struct {
		Norm string `yaml:"norm" doc:"a choice" choices:"folded=merged|apart"`
	}
	c := fakeCatalog{}
	fake(c, "dataset/fake", stages.Whole, "", "images", params{Norm: "merged"})
	for value, want := range map[string]string{
		"": `"merged"`, "{norm: folded}": `"merged"`, "{norm: merged}": `"merged"`,
		"{norm: apart}": `"apart"`,
	} {
		text := "name: x\nstages:\n  images: {uses: dataset/fake, with: " + value + "}\npublish: [images]\n"
		p, err := Parse("x.yaml", []byte(text), ".", c, Overrides{})
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if got := AppendValue(nil, reflect.ValueOf(p.Cells[0].Params).Elem().Field(0)); string(got) != want {
			t.Errorf("%s: keys have %s, not %s", value, got, want)
		}
	}
	text := "name: x\nstages:\n  images: {uses: dataset/fake, with: {norm: folder}}\npublish: [images]\n"
	_, err := Parse("x.yaml", []byte(text), ".", c, Overrides{})
	if err == nil || !strings.Contains(err.Error(), "is none of folded, apart") {
		t.Errorf("the error names the present choices: %v", err)
	}
}
