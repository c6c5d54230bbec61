package stages

import (
	"reflect"
	"strings"
)

// A Definition describes a metric in the terms in which papers describe theirs. Two numbers of one name can
// be compared if all of them agree. The texts are short. They leave out which scores are better, and the
// worst and the best value: these are facts of the score's port (see [Measure]).
type Definition struct {
	Formula     string // in the symbols of docs/metrics.md
	Unit        string // what is replaced, ranked or counted at a time: a pixel, a segment, an image
	Operator    string // how the image is altered: the substrate, the noise, the mask; or "none"
	Response    string // what is read of the model or method: a probability, a logit, a map; or "none"
	Reference   string // what the response or the map is compared with: the image itself, a mask, another map
	Aggregation string // how the values of an image become its score
	Randomness  string // what is drawn, and what determines the draws; or "none"
	Undefined   string // where the score is NaN; or "never"
}

// An Aspect is a field of a [Definition]: its name in lower case, and its text.
type Aspect struct{ Name, Text string }

// Aspects returns the fields of a definition in order, also empty ones; none if all are empty.
func (d Definition) Aspects() []Aspect {
	if d == (Definition{}) {
		return nil
	}
	var list []Aspect
	for field, value := range reflect.ValueOf(d).Fields() {
		list = append(list, Aspect{strings.ToLower(field.Name), value.String()})
	}
	return list
}
