package attribute

import "github.com/runexp/runexp/stages"

// Needs is what a method asks of a model.
type Needs struct {
	Model      bool   // it asks one at all
	Gradient   bool   // it goes backwards through it
	Rectifiers bool   // without Relu it is another method
	Layer      string // where its map is made unless told otherwise: input, final
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
	}
	return n
}

func (p Tapped) tap() Tapped { return p }
