package attribute

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestFullGrad compares maps with those of full_grad.py.
func TestFullGrad(t *testing.T) {
	for key, want := range keptMaps(t, "full_grad.json") {
		net, variant, _ := strings.Cut(key, " ")
		p := FullGrad.NewParams().(*FullGradParams)
		p.Variant = variant
		got := mapsOf(t, FullGrad, p, attnLRPInput(t, "quickstart/"+net))[0]
		var some []float64
		for i := 0; i < 64; i += 3 {
			for j := 0; j < 64; j += 3 {
				some = append(some, got[64*i+j])
			}
		}
		near(t, key, singles(some), singles(want), 2e-5)
	}
}

// unexplained returns what the shares of an image and of the constants sum to minus the logit.
func unexplained(t *testing.T, in map[string][]stages.Data, b relevance.Balance) float64 {
	t.Helper()
	p := FullGrad.NewParams().(*FullGradParams)
	p.Backward = b
	r := stagetest.Run(t, FullGrad, p, in)
	left, err := stages.ScalarOf(r.Payloads["completeness"][0])
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestFullGradIsComplete checks that the shares of image and constants sum to the logit: of nets of ReLUs by
// derivatives, of all others by balanced ones.
func TestFullGradIsComplete(t *testing.T) {
	for _, net := range []string{"quickstart/vgg", "quickstart/vgg-bn", "quickstart/resnet", "quickstart/vit",
		"subset/efficientnet", "subset/convnext", "subset/swin", "subset/vit"} {
		in := attnLRPInput(t, net)
		if left := unexplained(t, in, relevance.Balanced()); !(math.Abs(left) <= 2e-5) {
			t.Errorf("%s, balanced: %v is left", net, left)
		} else {
			t.Logf("%s, balanced: %.2g", net, left)
		}
		left := unexplained(t, in, relevance.Balance{})
		relus := strings.Contains(net, "vgg") || strings.HasSuffix(net, "/resnet")
		if complete := math.Abs(left) <= 2e-5; complete != relus {
			t.Errorf("%s: %v is left", net, left)
		} else {
			t.Logf("%s: %.2g", net, left)
		}
	}
}
