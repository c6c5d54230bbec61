package results

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// A Curve is the model's responses while pixels of images or tokens of texts are replaced, or inserted, in
// the order of maps.
type Curve struct {
	Cell          string
	Coord         []stages.Coord
	Order         string   // the curves' fact
	Unit          string   // the curves' fact: "token" of texts, "" for pixels
	Shares        string   // the curves' fact
	Responses     []string // the names of the rows of Values
	Ranks, Values *Payloads
	Replaces      *stages.Replacement // nil for texts
}

// An indexedCurve has positions in Ports.
type indexedCurve struct {
	Cell          string
	Coord         []stages.Coord `json:",omitempty"` // of curves of images
	Order         string
	Unit          string `json:",omitempty"` // of curves of images, as the next ones
	Shares        string `json:",omitempty"`
	Responses     []string
	Ranks, Curves int
	Replaces      *stages.Replacement `json:",omitempty"`
}

// addCurve adds a cell with curves to the cell that has the maps by whose ranks it replaces tokens, or units
// of images.
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
	if !known {
		return nil
	}
	facts, err := x.r.Facts(c, port)
	if err != nil {
		return err
	}
	curve := indexedCurve{Cell: c.String(), Order: facts["order"],
		Responses: strings.Split(facts["responses"], ",")}
	switch texts := x.Cells[at].Words != nil; {
	case texts && facts["unit"] == "token":
	case !texts && c.Stage.HooksOf(c.Params).Replaces != nil:
		curve.Replaces = c.Stage.HooksOf(c.Params).Replaces
		curve.Coord, curve.Unit, curve.Shares = c.Coord, facts["unit"], facts["shares"]
	default:
		return nil
	}
	if curve.Ranks, err = x.port(ranks.From, ranks.Port); err != nil {
		return err
	}
	if curve.Curves, err = x.port(c, port); err != nil {
		return err
	}
	x.Cells[at].Curves = append(x.Cells[at].Curves, curve)
	return nil
}

// setCurves adds the curves in the order of the maps.
func (p *CellMaps) setCurves(c indexedCell, of func(i int) *Payloads) {
	for _, curve := range c.Curves {
		if of(curve.Curves) != nil && of(curve.Ranks) != nil {
			p.Curves = append(p.Curves, Curve{Cell: curve.Cell, Coord: curve.Coord, Order: curve.Order,
				Unit: curve.Unit, Shares: curve.Shares, Responses: curve.Responses,
				Ranks: of(curve.Ranks), Values: of(curve.Curves), Replaces: curve.Replaces})
		}
	}
}
