package plan

import (
	"strings"
	"testing"
)

// TestSetLabel checks that --set labels an id, also one that has no label, and that the experiment as it ran
// has the label.
func TestSetLabel(t *testing.T) {
	const text = "name: x\naxes: {size: {a: {n: 16, label: small}, b: {n: 32}}}\nstages:\n" +
		"  images: {uses: dataset/shapes, matrix: [size], with: {size: \"${size.n}\"}}\npublish: [images]\n"
	p, err := Parse("x.yaml", []byte(text), "", paperCatalog(), Overrides{
		Set: []string{"axes.size.a.label=16 · pixels", `axes.size.b.label="32"`, "axes.size.b.family=large"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, b, f := p.Labels["size"]["a"], p.Labels["size"]["b"], p.Families["size"]["b"]
		if a != "16 · pixels" ||
			b != "32" || f != "large" {
			t.Errorf("labels %q and %q, family %q", a, b, f)
		}
		if p, err = Parse("x.yaml", p.Resolved(), "", paperCatalog(), Overrides{}); err != nil {
			t.Fatal(err)
		}
	}
	ds := diagsOf(t, paperCatalog(), text, Overrides{Set: []string{"axes.size.b.label=32"}})
	if len(ds) != 1 || !strings.Contains(ds[0].Hint, `write label: "32"`) {
		t.Errorf("a number as a label: %v", ds)
	}
}
