package registry

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/docs"
)

// TestElsewhere holds that names of the field and of libraries are answered, by stages that exist or by the
// way to do without.
func TestElsewhere(t *testing.T) {
	set := Builtin()
	const differs = " (docs/coming-from.md says what differs)"
	for name, want := range map[string]string{
		"PixelFlipping":   "PixelFlipping: perturb/ablation, score/auc",
		"max-sensitivity": "max-sensitivity: perturb/noise (distribution: uniform), score/sensitivity.max",
		"Gradient-SHAP":   "GradientShap: attribute/expected-gradients" + differs,
		"IG":              "IG: attribute/integrated-gradients" + differs,
		"eigen-cam":       "EigenCAM: attribute/eigen-cam" + differs,
		"kpca-cam": "KPCA_CAM isn't here (attribute/eigen-cam projects the layer itself): " +
			"attribute/external reads maps of other programs, and score/external their scores",
		"fullgrad": "FullGrad: attribute/full-grad" + differs,
		"shapleycam": "ShapleyCAM isn't here: attribute/external reads maps of other programs, and " +
			"score/external their scores",
		"nothing of the kind": "", "": "", "+": "",
	} {
		if got := set.Elsewhere(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestElsewhereKnowsItsPages holds that each name on docs/coming-from.md and each name of a metric has an
// answer, and that what an answer names exists.
func TestElsewhereKnowsItsPages(t *testing.T) {
	set := Builtin()
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.names()...)
	}
	of := len(names)
	for line := range strings.Lines(docs.ComingFrom()) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[2], "*not here*") &&
			!strings.Contains(cells[2], "`attribute/") && !strings.Contains(cells[2], "`score/") {
			continue
		}
		for _, m := range quotedCode.FindAllStringSubmatch(cells[1], -1) {
			name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "metrics."), "(")
			names = append(names, name)
		}
	}
	if of < 60 || len(names) < of+120 {
		t.Errorf("%d names of metrics, %d of libraries", of, len(names)-of)
	}
	for _, name := range names {
		hint := set.Elsewhere(name)
		if hint == "" {
			t.Errorf("%s has no answer", name)
		}
		for _, word := range strings.FieldsFunc(hint, func(r rune) bool {
			return strings.ContainsRune(" ,;:()", r)
		}) {
			word, _, _ = strings.Cut(word, ".")
			if family, _, ok := strings.Cut(word, "/"); !ok || len(set.Family(family)) == 0 {
				continue
			}
			if _, ok := set.Lookup(word); !ok {
				t.Errorf("%s: %s: there is no stage %s", name, hint, word)
			}
		}
	}
}
