package attribute

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestAttentionMaps compares maps of attention and its gradients with those of attention_maps.py.
func TestAttentionMaps(t *testing.T) {
	for key, want := range keptMaps(t, "attention_maps.json") {
		words := strings.Fields(key) // net, method, first block, output, backward pass
		start, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		at := common()
		at.Output = words[3]
		var by Balanced
		if len(words) > 4 {
			if err := by.Backward.UnmarshalText([]byte(words[4])); err != nil {
				t.Fatal(err)
			}
		}
		var stage stages.Stage
		var params any
		switch words[1] {
		case "generic-attention":
			stage, params = GenericAttention, &GenericAttentionParams{at, by, start}
		case "grad-eclip":
			stage, params = GradECLIP, &GradECLIPParams{at, by}
		case "legrad":
			stage, params = LeGrad, &LeGradParams{at, by, start}
		case "transition-attention":
			stage, params = TransitionAttention, &TransitionAttentionParams{at, by, 3, start}
		default:
			t.Fatalf("%s: no such method", key)
		}
		in := attnLRPInput(t, words[0])
		got := mapsOf(t, stage, params, in)[0]
		side, size := int(math.Sqrt(float64(len(want)))), int(math.Sqrt(float64(len(got))))
		large := resized(want, side, side, size, size, "bilinear")
		if words[1] == "legrad" {
			large = toUnitRange(large)
		}
		near(t, key, singles(got), singles(large), 1e-5)
	}
}
