package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// TestFiguresHaveNumbers checks that the numbers of each figure that an experiment publishes are in its
// review folder: in a table of the figure's own, or in the table that it draws, which is published too. A
// sheet, of images or texts, shows maps; its numbers are scores, which all folders have under items.
func TestFiguresHaveNumbers(t *testing.T) {
	figures := 0
	for _, pattern := range []string{"*.yaml", "metrics/*.yaml", "papers/*.yaml"} {
		files, err := filepath.Glob("../../experiments/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			p := loadPaper(t, file, plan.Overrides{})
			for _, step := range p.Publish {
				c := step.Cells[0]
				if !makes(c, stages.Figure) || c.Stage.Name == "report/sheet" ||
					c.Stage.Name == "report/text" {
					continue
				}
				figures++
				if !makes(c, stages.TableType) && !drawsPublished(p, c) {
					t.Errorf("%s: the figure %s has no table, and what it draws isn't published", file,
						step.Name)
				}
			}
		}
	}
	if figures < 20 {
		t.Errorf("%d figures", figures)
	}
}

func makes(c *plan.Cell, is stages.Type) bool {
	return slices.ContainsFunc(c.Stage.Outputs, func(o stages.Port) bool { return o.Type == is })
}

// drawsPublished reports whether a cell reads tables, all of them of published stages.
func drawsPublished(p *plan.Plan, c *plan.Cell) bool {
	n := 0
	for _, in := range c.Inputs {
		for _, edge := range in.Edges {
			if edge.From.Stage.Outputs[edge.Port].Type != stages.TableType {
				continue
			}
			if n++; !slices.Contains(p.Publish, edge.From.Step) {
				return false
			}
		}
	}
	return n > 0
}
