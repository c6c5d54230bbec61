package pipeline

import (
	"reflect"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// A Prediction is the classes that the explained net predicts for the images, which may be others than the
// explained ones.
type Prediction struct{ Targets, Probability *Payloads }

type picturePrediction struct{ Targets, Probability int }

// A question is put to a net: what it makes of some images.
type question struct{ model, images source }

type source struct {
	cell *plan.Cell
	port int
}

// asked returns the question that a cell, or those that its maps come from, puts to a net.
func asked(c *plan.Cell) (q question, ok bool) {
	model, hasModel := upstream(c, stages.Model)
	images, hasImages := upstream(c, stages.Images)
	return question{source{model.From, model.Port}, source{images.From, images.Port}}, hasModel && hasImages
}

// predictors returns the cells that choose the classes which nets predict: a stage that chooses classes does
// so by default.
func predictors(p *plan.Plan) map[question]*plan.Cell {
	index := map[question]*plan.Cell{}
	for _, c := range p.Cells {
		chooses := slices.ContainsFunc(c.Stage.Outputs, isType(stages.Targets)) && probabilityPort(c) >= 0
		if chooses && reflect.DeepEqual(c.Params, c.Stage.NewParams()) {
			if q, ok := asked(c); ok {
				index[q] = c
			}
		}
	}
	return index
}

// probabilityPort returns the output port with the probabilities of the classes that a cell chooses, or −1.
func probabilityPort(c *plan.Cell) int {
	return slices.IndexFunc(c.Stage.Outputs, func(p stages.Port) bool { return p.Name == "probability" })
}

// prediction returns what the net that a cell explains predicts, nil if no cell asked.
func (x *pictureIndexer) prediction(c *plan.Cell) (*picturePrediction, error) {
	q, ok := asked(c)
	from := x.predict[q]
	if !ok || from == nil {
		return nil, nil
	}
	targets, err := x.port(from, slices.IndexFunc(from.Stage.Outputs, isType(stages.Targets)))
	if err != nil {
		return nil, err
	}
	probability, err := x.port(from, probabilityPort(from))
	return &picturePrediction{targets, probability}, err
}
