package metric

import (
	"fmt"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Response returns one response of a curve, which its facts name: a number per point. Curves of an expression
// have its value in the place of a class's probability and logit.
func Response(facts stages.Facts, payload []byte, name string) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	names := strings.Split(facts["responses"], ",")
	if len(t.Shape) != 2 || t.Shape[0] != len(names) || t.Shape[1] < 2 {
		return nil, fmt.Errorf("responses of shape %v aren't those of the rows %q", t.Shape,
			facts["responses"])
	}
	for i, n := range names {
		if n == name || n == "value" && (name == "probability" || name == "logit") {
			return t.Float64s()[i*t.Shape[1] : (i+1)*t.Shape[1]], nil
		}
	}
	if text := facts["target"]; text != "" {
		return nil, fmt.Errorf("the curves are of the expression %s, and have its value alone: write "+
			"response: probability, which reads it", text)
	}
	return nil, fmt.Errorf("there is no response %q, only %q", name, facts["responses"])
}
