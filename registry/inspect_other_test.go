package registry

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestInspectOthers holds that a model of texts and a detector are called what they are not, and get no lines
// for an experiment.
func TestInspectOthers(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	for name, want := range map[string]string{
		"texts":    `input "ids" takes INT64`,
		"detector": "the output has shape [1 5 4]: one number per image and class is needed",
	} {
		x, err := Inspect(t.Context(), "testdata/"+name+".onnx", Look{})
		if err != nil {
			t.Fatal(err)
		}
		if !x.NoClassifier || !strings.HasPrefix(x.Problem, "this is neither an image nor a text classifier: "+want) ||
			x.Stanza != "" || len(x.Methods) > 0 {
			t.Errorf("%s: %t, %q, %q, %d methods", name, x.NoClassifier, x.Problem, x.Stanza, len(x.Methods))
		}
	}
}
