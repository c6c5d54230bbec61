package lower

import (
	"errors"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// pairReference names the reference's value for each value of the graph, so that rules can compare the two.
func (u *unit) pairReference() error {
	var ok bool
	if u.twin, ok = relevance.ReferenceNames(u.graph, u.reference.graph, u.Input); !ok {
		return errors.New("the graph for the reference isn't that for the images")
	}
	u.Rules = relevance.Rescale(u.Official, u.twin)
	return nil
}

// referenceInputs is what the reference's program is fed.
func referenceInputs(s Shapes) []IO { return []IO{{"reference", s.ImageShape(1)}} }

func referenceImage(*onnx.Fragment) string { return prefix + "reference" }
