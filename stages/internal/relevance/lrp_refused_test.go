package relevance

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLRPOperators checks that the operators without a rule of layer-wise relevance, of those that have a
// derivative, are the ones that docs/methods.md lists.
func TestLRPOperators(t *testing.T) {
	library(t)
	var refused []string
	for _, op := range All() {
		if op.Kind == Opaque {
			continue
		}
		for _, ex := range op.Examples {
			s, err := prepare(t, op, ex, plainLRP(), 1)
			if err == nil {
				s.close()
			} else if strings.Contains(err.Error(), "no rule for it;") && !slices.Contains(refused, op.Type) {
				refused = append(refused, op.Type)
			}
		}
	}
	page, err := os.ReadFile("../../../docs/methods.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	if list := "no rule for " + strings.Join(refused, ", ") + ":"; !strings.Contains(text, list) {
		t.Errorf("docs/methods.md doesn't say %q", list)
	}
}
