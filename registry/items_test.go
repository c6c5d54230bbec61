package registry

import (
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestItemsAreHandedOn gives every stage texts on one port after the other. All that it makes of them must
// say that its items are texts, or what else they are, and no stage may call images anything.
func TestItemsAreHandedOn(t *testing.T) {
	builtin := Builtin()
	others := map[string]string{"stats/agreement": "combinations", "stats/irr": "combinations"}
	for _, name := range builtin.Names() {
		s, _ := builtin.Lookup(name)
		for i := range s.Inputs {
			ports := map[string][]stages.Data{}
			for k := range s.Inputs {
				f := stages.Facts{"height": "1", "width": "8", "classes": "2",
					"responses": "probability,logit,correct", "order": "deletion", "shares": "0,1",
					"unit": "pixel", "draw": "single"}
				if k == i {
					f[stages.ItemsFact] = "texts"
				}
				ports[s.Inputs[k].Name] = []stages.Data{{Facts: f}}
			}
			made, err := s.FactsOf(s.NewParams(), ports)
			if err != nil { // other texts are wanted, and called so
				other := *s
				s, other.Facts = &other, nil
				made, _ = s.FactsOf(s.NewParams(), ports)
			}
			for _, out := range s.Outputs {
				want := "texts"
				if other := others[name]; other != "" && out.Type == stages.Scores {
					want = other
				}
				if got := made[out.Name][stages.ItemsFact]; got != want {
					t.Errorf("%s: %q of texts on %s are %q, want %q", name, out.Name, s.Inputs[i].Name, got,
						want)
				}
			}
			delete(ports[s.Inputs[i].Name][0].Facts, stages.ItemsFact)
			if made, err = s.FactsOf(s.NewParams(), ports); err != nil {
				t.Error(err)
			}
			for port, f := range made {
				if noun, ok := f[stages.ItemsFact]; ok {
					t.Errorf("%s: %q of images are %q", name, port, noun)
				}
			}
		}
	}
}
