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
	Others     bool   // it compares a class with others
}

// NeedsOf tells what an attribution method with these parameters asks of a model.
func NeedsOf(s *stages.Stage, params any) Needs {
	var n Needs
	if p := s.Input("model"); p != nil {
		n.Model = !p.Optional
	}
	if p, ok := params.(interface{ tap() Tapped }); ok {
		n.Gradient, n.Layer = true, p.tap().Layer
	}
	// What has no rule with gates that are constants may have one with halved ones.
	if p, ok := params.(interface{ relevant() Relevant }); ok && p.relevant().Gates == string(relevance.GatesConstant) {
		n.Rules = relevance.PlainLRP().Name
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
	case CLRP.Name:
		n.Others = true
	case RAP.Name, CRAP.Name:
		n.Rules, n.Others = relevance.RAP().Policy().Name, s.Name == CRAP.Name
	case DeepLIFT.Name:
		n.Rules = relevance.Rescale(false, nil).Name
	}
	return n
}

func (p Tapped) tap() Tapped          { return p }
func (p Relevant) relevant() Relevant { return p }
