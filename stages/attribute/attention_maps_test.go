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
		words := strings.Fields(key) // net, method, first block, output
		start, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		at := common()
		at.Output = words[3]
		var stage stages.Stage
		var params any
		switch words[1] {
		case "generic-attention":
			stage, params = GenericAttention, &GenericAttentionParams{at, start}
		default:
			t.Fatalf("%s: no such method", key)
		}
		side := int(math.Sqrt(float64(len(want))))
		near(t, key, singles(mapsOf(t, stage, params, attnLRPInput(t, "quickstart/"+words[0]))[0]),
			singles(resized(want, side, side, 64, 64, "bilinear")), 1e-5)
	}
}
