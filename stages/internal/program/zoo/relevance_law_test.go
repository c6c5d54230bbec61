package zoo

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// zero is LRP-0: no rule adds anything to what it divides by.
func zero() relevance.Policy {
	return relevance.LRP{
		Conv: relevance.Epsilon(0), Dense: relevance.Epsilon(0), Bias: true,
		Norm: relevance.NormMerged, Gates: relevance.GatesConstant,
	}.Policy()
}

// relevance0 returns the relevance of LRP-0 for the target's logit.
func (s specimen) relevance0(t *testing.T) ([]float32, error) {
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
	g, err := n.Gradient(t.Context(), slot, program.Question{Rules: zero(), Start: program.StartLogits}, 1)
	if err != nil {
		return nil, err
	}
	for i := range g.Batch {
		for k, v := range image {
			g.Image(i)[k] = float32(v)
		}
		g.Explain(i, program.Target{Class: s.known.Target, Minus: -1})
	}
	if err := g.Run(t.Context()); err != nil {
		return nil, err
	}
	return slices.Clone(g.Gradient(0)), nil
}

// TestZooRelevance holds LRP-0 of every net against input times gradient with gates,
// softmax and the deviations of normalisations detached, which PyTorch computes of the
// net itself; see detached.py. What has no rule is refused, and counted.
func TestZooRelevance(t *testing.T) {
	held, refused := 0, 0
	for _, s := range specimens(t, folder(t)) {
		if s.export.Error != "" {
			continue
		}
		off, err := s.relevanceError(t)
		switch {
		case errors.Is(err, os.ErrNotExist): // PyTorch has no answer
		case err != nil && strings.Contains(err.Error(), "no rule for"):
			refused++
			t.Logf("%s: refused: %s", s.key(), clause(err))
		case err != nil:
			t.Errorf("%s: %s", s.key(), clause(err))
		case !(off <= s.limit()):
			t.Errorf("%s: off by %s, and may be by %s", s.key(), figure(off), figure(s.limit()))
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
		case !(off <= s.limit()):
			t.Errorf("%s: off by %s, and may be by %s", s.key(), figure(off), figure(s.limit()))
		}
		held++
	}
	if held < 7 {
		t.Errorf("%d nets", held)
	}
}

// relevanceError returns how far LRP-0 is from what PyTorch says.
func (s specimen) relevanceError(t *testing.T) (float64, error) {
	want, err := s.array("relevance")
	if err != nil {
		return 0, err
	}
	got, err := s.relevance0(t)
	if err != nil {
		return 0, err
	}
	return distance(got, want), nil
}
