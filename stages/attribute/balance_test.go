package attribute

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// balancedMethods are the methods with the parameter backward, and how long their paths are here.
var balancedMethods = []struct {
	stage stages.Stage
	set   map[string]int
}{
	{AGI, map[string]int{"Steps": 2, "Classes": 2}}, {BlurIG, map[string]int{"Steps": 4}},
	{ExpectedGradients, map[string]int{"Samples": 4}}, {FullGrad, nil}, {GradCAM, nil},
	{GradCAMPlusPlus, nil},
	{GuidedIG, map[string]int{"Steps": 4}}, {HiResCAM, nil}, {IDG, map[string]int{"Steps": 4}},
	{IDGI, map[string]int{"Steps": 4}}, {InputXGradient, nil},
	{IntegratedGradients, map[string]int{"Steps": 4}}, {LayerCAM, nil},
	{LeftIG, map[string]int{"Steps": 4}}, {Saliency, nil}, {SmoothGrad, map[string]int{"Samples": 2}},
	{VarGrad, map[string]int{"Samples": 2}}, {XRAI, map[string]int{"Steps": 4}},
}

// TestBackward: a balanced backward pass moves the maps of every method on a transformer, and none on a net
// of Relus, which has nothing to balance.
func TestBackward(t *testing.T) {
	for _, m := range balancedMethods {
		t.Run(strings.TrimPrefix(m.stage.Name, "attribute/"), func(t *testing.T) {
			for net, moves := range map[string]bool{"vit": true, "vgg": false} {
				in := pathInput(t, net, 0)
				if slices.ContainsFunc(m.stage.Inputs,
					func(p stages.Port) bool { return p.Name == "background" }) {
					in["background"] = []stages.Data{pathBackground()}
				}
				at := func(b relevance.Balance) []float64 {
					p := m.stage.NewParams()
					v := reflect.ValueOf(p).Elem()
					v.FieldByName("Backward").Set(reflect.ValueOf(b))
					for name, n := range m.set {
						v.FieldByName(name).SetInt(int64(n))
					}
					return mapsOf(t, m.stage, p, in)[0]
				}
				if moved := !slices.Equal(at(relevance.Balance{}), at(relevance.Balanced())); moved != moves {
					t.Errorf("%s: the map moves: %t", net, moved)
				}
			}
		})
	}
}

// TestBalanceRemark: a net without anything to balance is told of.
func TestBalanceRemark(t *testing.T) {
	for net, said := range map[string]bool{"vit": false, "vgg": true} {
		n := modeltest.Net(t, pathInput(t, net, 0)["model"][0])
		g, err := n.Graph(t.Context(), stagetest.NewSlot(), 2)
		if err != nil {
			t.Fatal(err)
		}
		p := plain(tapped())
		if why := p.Remark(g); why != "" {
			t.Errorf("%s, plain: %s", net, why)
		}
		p.Backward = relevance.Balanced()
		if why := p.Remark(g); strings.Contains(why, "backward: balanced") != said {
			t.Errorf("%s: %q", net, why)
		}
	}
}
