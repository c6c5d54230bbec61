package zoo

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// relevanceLimit is the relative error that relevance may have. Its rules divide by sums, without any ε here:
// where a sum nearly cancels, single precision has few digits of it, and the relevance of one that is 0 is
// lost, 2.1e-3 of all in one net. A wrong rule is off by a tenth at least.
const relevanceLimit = 1e-2

// unruled are the nets that LRP has no rule for, each with the reason.
var unruled = map[string]string{}

// relevance returns the relevance of the target's logit by the ε-rule everywhere; ε = 0 is LRP-0. Each pixel
// is moved by that part of itself, up or down.
func (s specimen) relevance(t *testing.T, epsilon float32, moved float64) ([]float32, error) {
	n, err := s.net()
	if err != nil {
		return nil, err
	}
	image, err := s.array("image")
	if err != nil {
		return nil, err
	}
	slot := newSlot()
	defer slot.close()
	rules := relevance.LRP{
		Conv: relevance.Epsilon(epsilon), Dense: relevance.Epsilon(epsilon), Stabiliser: epsilon, Bias: true,
		Norm: relevance.NormFolded, Gates: relevance.GatesConstant,
	}
	g, err := n.Gradient(t.Context(), slot,
		lower.Question{Rules: rules.Policy(), Start: lower.StartLogits}, 1)
	if err != nil {
		return nil, err
	}
	for i := range g.Batch {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for k, v := range image {
			g.Image(i)[k] = float32(v * (1 + moved*float64(1-2*r.IntN(2))))
		}
		g.Explain(i, program.Target{Class: s.known.Target, Minus: -1})
	}
	if err := g.Run(t.Context()); err != nil {
		return nil, err
	}
	return slices.Clone(g.Gradient(0)), nil
}

// TestZooRelevance holds LRP-0 of every net against input times gradient with gates, softmax and the
// deviations of normalisations detached, which PyTorch computes of the net itself; see detached.py. What has
// no rule is listed.
func TestZooRelevance(t *testing.T) {
	held, refused := 0, 0
	for _, s := range specimens(t, folder(t)) {
		if s.export.Error != "" {
			continue
		}
		off, err := s.relevanceError(t)
		why := unruled[s.name]
		switch {
		case errors.Is(err, os.ErrNotExist): // PyTorch has no answer
		case err != nil && why != "" && strings.Contains(err.Error(), why):
			refused++
			t.Logf("%s: refused: %s", s.key(), clause(err))
		case err != nil || why != "":
			t.Errorf("%s: %v, listed as %q", s.key(), err, why)
		case !(off <= relevanceLimit):
			t.Errorf("%s: off by %s, and may be by %s", s.key(), figure(off), figure(relevanceLimit))
		default:
			held++
			t.Logf("%s: off by %s", s.key(), figure(off))
		}
	}
	t.Logf("%d agree, %d are refused", held, refused)
}

// TestSubsetRelevance holds the same of the small nets that have gates or normalisations.
func TestSubsetRelevance(t *testing.T) {
	held := 0
	for _, s := range specimens(t, unpacked(t)) {
		off, err := s.relevanceError(t)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			t.Errorf("%s: %v", s.key(), err)
		case !(off <= relevanceLimit):
			t.Errorf("%s: off by %s, and may be by %s", s.key(), figure(off), figure(relevanceLimit))
		}
		held++
	}
	if held < 7 {
		t.Errorf("%d nets", held)
	}
}

// TestSubsetStill holds that maps of nets with attention stay where they are when pixels move by what
// rounding moves them by, at the ε and the stabiliser that methods have by default: no sum is divided by that
// has to give more than it was given.
func TestSubsetStill(t *testing.T) {
	for _, s := range specimens(t, unpacked(t)) {
		a, err := s.relevance(t, 1e-6, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.relevance(t, 1e-6, 2e-7)
		if err != nil {
			t.Fatal(err)
		}
		off := distance(a, doubles(b))
		t.Logf("%s moves by %s", s.key(), figure(off))
		if !(off <= 1e-5) {
			t.Errorf("%s moves by %s", s.key(), figure(off))
		}
	}
}

func doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// relevanceError returns how far LRP-0 is from what PyTorch says.
func (s specimen) relevanceError(t *testing.T) (float64, error) {
	want, err := s.array("relevance")
	if err != nil {
		return 0, err
	}
	got, err := s.relevance(t, 0, 0)
	if err != nil {
		return 0, err
	}
	return distance(got, want), nil
}
