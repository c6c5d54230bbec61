package zoo

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A balancedGradient is what balanced.py has of a gradient: its norm, and every Step-th value.
type balancedGradient struct {
	Norm   float64
	Step   int
	Values []float64
}

// balancedGradients returns them by net and balance.
func balancedGradients(t *testing.T, file string) (known map[string]map[string]balancedGradient) {
	t.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Skipf("skipped: %s isn't there; balanced.py makes it", file)
	}
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// off returns how far a gradient is from the known one, relative to the larger of the two parts compared:
// its values, and its norm.
func (g balancedGradient) off(got []float32) float64 {
	var norm float64
	var some []float32
	for k, v := range got {
		norm += float64(v) * float64(v)
		if k%g.Step == 0 {
			some = append(some, v)
		}
	}
	if len(some) != len(g.Values) {
		return math.Inf(1)
	}
	return max(distance(some, g.Values), math.Abs(math.Sqrt(norm)/g.Norm-1))
}

// holdBalanced compares gradients of nets with those that PyTorch computes in double precision of the nets
// themselves, and returns the number of nets.
func holdBalanced(t *testing.T, nets []specimen, known map[string]map[string]balancedGradient) (held int) {
	t.Helper()
	for _, s := range nets {
		if s.export.Error != "" || known[s.name] == nil || unbalanced[s.name] != "" {
			continue
		}
		n, err := s.net()
		if err != nil {
			t.Errorf("%s: %v", s.key(), err)
			continue
		}
		slot := newSlot()
		for _, name := range []string{"balanced", "attn-lrp", "cp-lrp", "decompx"} {
			got, _, err := s.derivative(t, n, slot, balanced(t, name))
			if err != nil {
				t.Errorf("%s, %s: %v", s.key(), name, err)
				continue
			}
			off := known[s.name][name].off(got)
			t.Logf("%s, %s: %s", s.key(), name, figure(off))
			if !(off <= s.limit()) {
				t.Errorf("%s, %s: off by %s, and may be by %s", s.key(), name, figure(off), figure(s.limit()))
			}
		}
		slot.close()
		held++
	}
	return held
}

// TestSubsetBalanced compares the small nets.
func TestSubsetBalanced(t *testing.T) {
	known := balancedGradients(t, filepath.Join("testdata", "balanced.json"))
	if held := holdBalanced(t, specimens(t, unpacked(t)), known); held < 10 {
		t.Errorf("%d nets", held)
	}
	vit := known["subset/vit"]
	for _, a := range []string{"balanced", "attn-lrp", "cp-lrp"} {
		for _, b := range []string{"balanced", "attn-lrp", "cp-lrp"} {
			if a != b && slices.Equal(vit[a].Values, vit[b].Values) {
				t.Errorf("%s and %s are the same", a, b)
			}
		}
	}
}

// TestZooBalanced compares all nets, if balanced.py has been run.
func TestZooBalanced(t *testing.T) {
	dir := folder(t)
	known := balancedGradients(t, filepath.Join(dir, "balanced", "balanced.json"))
	t.Logf("%d nets", holdBalanced(t, specimens(t, dir), known))
}
