package results

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// A Curve is the model's responses while tokens of texts are removed, or inserted, in the order of maps.
type Curve struct {
	Cell          string
	Order         string   // the curves' fact
	Responses     []string // the names of the rows of Values
	Ranks, Values *Payloads
}

// An indexedCurve has positions in Ports.
type indexedCurve struct {
	Cell          string
	Order         string
	Responses     []string
	Ranks, Curves int
}

// words returns the position of the words of the texts on an edge, nil without any.
func (x *mapIndexer) words(e plan.Edge) (*int, error) {
	for {
		if k := slices.IndexFunc(e.From.Stage.Outputs, isType(stages.WordsType)); k >= 0 {
			at, err := x.port(e.From, k)
			return &at, err
		}
		in := slices.IndexFunc(e.From.Stage.Inputs, isType(stages.Tokens))
		if in < 0 || len(e.From.Inputs[in].Edges) == 0 {
			return nil, nil
		}
		e = e.From.Inputs[in].Edges[0]
	}
}

// addCurve adds a cell with curves over tokens to the cell that has the maps.
func (x *mapIndexer) addCurve(c *plan.Cell, port int) error {
	in := slices.IndexFunc(c.Stage.Inputs, isType(stages.Ranks))
	if in < 0 || len(c.Inputs[in].Edges) == 0 {
		return nil
	}
	ranks := c.Inputs[in].Edges[0]
	from := slices.IndexFunc(ranks.From.Stage.Inputs, isType(stages.Maps))
	if from < 0 || len(ranks.From.Inputs[from].Edges) == 0 {
		return nil
	}
	at, known := x.cells[ranks.From.Inputs[from].Edges[0].From]
	if !known || x.Cells[at].Words == nil {
		return nil
	}
	facts, err := x.r.Facts(c, port)
	if err != nil || facts["unit"] != "token" {
		return err
	}
	curve := indexedCurve{Cell: c.String(), Order: facts["order"],
		Responses: strings.Split(facts["responses"], ",")}
	if curve.Ranks, err = x.port(ranks.From, ranks.Port); err != nil {
		return err
	}
	if curve.Curves, err = x.port(c, port); err != nil {
		return err
	}
	x.Cells[at].Curves = append(x.Cells[at].Curves, curve)
	return nil
}
