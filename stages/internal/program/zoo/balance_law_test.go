package zoo

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// balanceLimit is how much of the logit may be lost, relative to the magnitudes that it is a sum of, in
// single precision.
const balanceLimit = 1e-5

// unbalanced are the nets without balanced gradients, each with the reason.
var unbalanced = map[string]string{}

// balanced returns the balance of a name.
func balanced(t *testing.T, name string) relevance.Policy {
	t.Helper()
	var b relevance.Balance
	if err := b.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	return b.Policy()
}

// balanceLost returns how much of the target's logit is in neither the image times its balanced gradient nor
// the constants times theirs, and the worst of any node, both relative to the sums of magnitudes.
func (s specimen) balanceLost(t *testing.T) (lost, worst float64, where string, err error) {
	n, err := s.net()
	if err != nil {
		return 0, 0, "", err
	}
	image, err := s.array("image")
	if err != nil {
		return 0, 0, "", err
	}
	slot := newSlot()
	defer slot.close()
	a, err := n.Audit(t.Context(), slot, lower.Question{Rules: balanced(t, "balanced")})
	if err != nil {
		return 0, 0, "", err
	}
	for k, v := range image {
		a.Image(0)[k] = float32(v)
	}
	a.Explain(0, program.Target{Class: s.known.Target, Minus: -1})
	if err := a.Run(t.Context()); err != nil {
		return 0, 0, "", err
	}
	accounts := a.Accounts()
	lost, size := accounts[0].Arrives, math.Abs(accounts[0].Arrives)
	for k, g := range a.Gradient.Gradient(0) {
		lost -= float64(g) * image[k]
		size += math.Abs(float64(g) * image[k])
	}
	for _, at := range accounts {
		lost -= at.Constants
		size += math.Abs(at.Constants)
		off := math.Abs(at.Arrives-at.Leaves-at.Constants) /
			math.Max(at.Size, math.Abs(at.Arrives)+math.Abs(at.Constants))
		if !(off <= worst) {
			worst, where = off, fmt.Sprintf("%s %q: %g arrives, %g leaves, %g to constants", at.Op, at.Node,
				at.Arrives, at.Leaves, at.Constants)
		}
	}
	return math.Abs(lost) / size, worst, where, nil
}

// holdBalance holds the law of balanced gradients for nets, and returns how many have it.
func holdBalance(t *testing.T, nets []specimen) (held, refused int) {
	t.Helper()
	for _, s := range nets {
		if s.export.Error != "" {
			continue
		}
		if _, err := s.net(); err != nil { // it has no gradient either
			t.Logf("%s: not loaded: %s", s.key(), clause(err))
			continue
		}
		lost, worst, where, err := s.balanceLost(t)
		why := unbalanced[s.name]
		switch {
		case err != nil && why != "" && strings.Contains(err.Error(), why):
			refused++
			t.Logf("%s: refused: %s", s.key(), clause(err))
		case err != nil || why != "":
			t.Errorf("%s: %v, listed as %q", s.key(), err, why)
		case !(lost <= balanceLimit):
			t.Errorf("%s: %s of the logit is lost; at the worst node, %s", s.key(), figure(lost), where)
		default:
			held++
			t.Logf("%s: %s is lost; %s at the worst node, %s", s.key(), figure(lost), figure(worst), where)
		}
	}
	return held, refused
}

// TestSubsetBalance: of the small nets, the image times its balanced gradient and the constants times theirs
// are the logit.
func TestSubsetBalance(t *testing.T) {
	if held, _ := holdBalance(t, specimens(t, unpacked(t))); held < 10 {
		t.Errorf("%d nets", held)
	}
}

// TestZooBalance is the same for all nets. Fewer than ten are refused.
func TestZooBalance(t *testing.T) {
	held, refused := holdBalance(t, specimens(t, folder(t)))
	t.Logf("%d have the law, %d are refused", held, refused)
	if len(unbalanced) >= 10 {
		t.Errorf("%d nets are refused", len(unbalanced))
	}
}
