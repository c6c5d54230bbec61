package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Needs is what a method asks of a model.
type Needs struct {
	Model      bool   // it asks one at all
	Gradient   bool   // it goes backwards through it
	Rectifiers bool   // without Relu it is another method
	Layer      string // where its map is made unless told otherwise: input, final
	Attention  bool   // it looks at attention of tokens to tokens
	Rules      string // the policy that it goes backwards by, if not all models have rules for it
}

// NeedsOf tells what an attribution method asks of a model.
func NeedsOf(s *stages.Stage) Needs {
	var n Needs
	if p := s.Input("model"); p != nil {
		n.Model = !p.Optional
	}
	if p, ok := s.NewParams().(interface{ tap() Tapped }); ok {
		n.Gradient, n.Layer = true, p.tap().Layer
	}
	switch s.Name {
	case GuidedBackprop.Name, GuidedGradCAM.Name, Deconvolution.Name:
		n.Rectifiers = true
	case AblationCAM.Name, ScoreCAM.Name, Occlusion.Name, RISE.Name:
		n.Gradient = false
	case AGI.Name:
		n.Gradient, n.Layer = true, "input"
	case RawAttention.Name, AttentionRollout.Name:
		n.Attention = true
	case TransitionAttention.Name:
		n.Gradient, n.Layer, n.Attention = true, "input", true
	case TIBAV.Name:
		n.Gradient, n.Layer, n.Attention, n.Rules = true, "input", true, relevance.TIBAV().Name
	case LRPEpsilon.Name, LRPGamma.Name, LRPZPlus.Name, LRPAlphaBeta.Name, LRPComposite.Name, CLRP.Name, LRPConservation.Name:
		n.Rules = relevance.PlainLRP().Name
	case RAP.Name, CRAP.Name:
		n.Rules = relevance.RAP().Policy().Name
	case DeepLIFT.Name:
		n.Rules = relevance.Rescale(false, nil).Name
	}
	return n
}

func (p Tapped) tap() Tapped { return p }
