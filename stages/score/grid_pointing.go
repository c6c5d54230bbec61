package score

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// GridPointingParams are the parameters of [GridPointing].
type GridPointingParams struct {
	Variant string `yaml:"variant" doc:"paper: a map without positive relevance has no score; official: it scores 0, as does one whose total is 1e-7 or less" choices:"paper|official"`
}

// GridPointing is the localisation score of Rao, Böhle and Schiele, "Towards Better Understanding Attribution
// Methods", CVPR 2022, equation 1: the share of the positive relevance in a grid that lies in the explained
// cell.
var GridPointing = stages.New(stages.Def[GridPointingParams]{
	Name: "score/grid-pointing",
	Doc: `share of the relevance in the explained cell

Positive relevance inside the cell divided by all positive relevance of the grid,
after summing channels and upsampling smaller maps to the grid bilinearly. 1 is best;
a constant map scores 1/n² on grids of n×n cells, which is the fact "baseline".
mosaic/grid makes the cells. Rao, Böhle and Schiele, CVPR 2022.`,
	Definition: stages.Definition{
		Formula:     "Σ over the explained cell of a⁺ / Σ of a⁺",
		Unit:        "a pixel of the grid; smaller maps are enlarged bilinearly",
		Operator:    "none; the image is a grid of n×n images",
		Response:    "none besides the map",
		Reference:   "the explained cell",
		Aggregation: "a quotient of sums over pixels",
		Randomness:  "none, besides that of the grids",
		Undefined: "for a map without positive relevance (variant: official has 0), and for one with a " +
			"value that isn't finite",
	},
	Version:  2,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps of grids"},
		{Name: "cells", Type: stages.Boxes, Doc: "the explained cell; facts: height, width, grid"},
	},
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the share, in [0,1]; fact: baseline"}},
	Variants: []stages.Variant{{
		Item: "maps without positive relevance", Default: "paper",
		Differs: "the paper's equation divides by zero, so the score is undefined; the official code gives " +
			"0, for totals up to 1e-7 too",
		Golden: "gridpg_difull_dipart",
	}},
	Defaults: GridPointingParams{Variant: paper},
	Facts: func(p GridPointingParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-4,
			ItemTolerance: kinkJump, Variant: tag(p.Variant)}
		n, err := positiveFact(in["cells"], "grid")
		if err != nil {
			return nil, err
		}
		baseline := strconv.FormatFloat(1/float64(n*n), 'g', -1, 64)
		return map[string]stages.Facts{"scores": m.Facts(stages.Facts{"baseline": baseline})}, nil
	},
	Run: func(_ context.Context, p GridPointingParams, e *stages.Env) error {
		facts := e.Facts("cells")
		height, err := positiveFact(facts, "height")
		if err != nil {
			return err
		}
		width, err := positiveFact(facts, "width")
		if err != nil {
			return err
		}
		for i := range e.Len() {
			x, err := gridPointing(p, e.In("maps", i), e.In("cells", i), height, width)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	},
})

// positiveFact reads a positive number from the facts of the cells.
func positiveFact(facts stages.Facts, name string) (int, error) {
	n, err := strconv.Atoi(facts[name])
	if err != nil || n < 1 {
		return 0, fmt.Errorf("the input \"cells\" has no fact %q: wire the cells of mosaic/grid", name)
	}
	return n, nil
}

func gridPointing(p GridPointingParams, mapPayload, cellPayload []byte, height, width int) (float64, error) {
	mask, err := metric.InsideBox(cellPayload, height, width)
	if err != nil {
		return 0, err
	}
	values, err := metric.Enlarged(mapPayload, height, width)
	if err != nil {
		return 0, err
	}
	total := metric.KeepPositive(values)
	if p.Variant == official && total <= 1e-7 {
		return 0, nil
	}
	return metric.MassAccuracy(values, mask), nil
}
