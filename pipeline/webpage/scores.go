package webpage

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

// A score is the means that the cells of a stage have at one port.
type score struct {
	Name  string    `json:"name"`
	Axes  []string  `json:"axes"`
	Cells []*scored `json:"cells"`
	Reads string    `json:"reads,omitempty"` // magnitude, positive or signed; "" if unknown
}

// A scored is one cell with its mean.
type scored struct {
	IDs       []string         `json:"ids"` // by axis of the score
	Cell      string           `json:"cell"`
	Direction stages.Direction `json:"direction,omitempty"` // areas under curves differ in it by the order of removal
	Mean      number           `json:"mean"`
	Low       number           `json:"low"`
	High      number           `json:"high"`
	N         int              `json:"n"`
	Undefined int              `json:"undefined,omitempty"`
	Items     int              `json:"items"` // the position of the items' ids; −1 without values
	Values    []number         `json:"values,omitempty"`
}

// addScores adds the means of the cells, in the folder's order, with their intervals and items.
func (m *model) addScores(f *publish.Folder) {
	lines, items := 0, 0
	if m.Scores, lines, items = m.scoresOf(f.Lines, f.Items); lines > 0 {
		m.Left = append(m.Left, fmt.Sprintf("%d scores aren't shown: cells/ has them.", lines))
	}
	if items > 0 {
		const text = "Of %d scores, those of the %s aren't shown, and no interval: the page would be " +
			"too large. items/ has them."
		m.Left = append(m.Left, fmt.Sprintf(text, items, m.ItemNoun))
	}
}

// scoresOf returns the scores of cells. Of left more scores, not even the mean fits into the page; of bare
// ones, only the mean does.
func (m *model) scoresOf(cells []*publish.Line, files []*publish.ItemFile) (list []*score, left, bare int) {
	list = []*score{}
	items := map[[2]string]*publish.ItemLine{}
	for _, file := range files {
		for _, l := range file.Lines {
			items[[2]string{file.Name, l.Cell}] = l
		}
	}
	index := map[string]*score{}
	lines, values := 0, 0
	for _, l := range cells {
		stage := publish.StageOf(l.Cell)
		for _, mean := range l.Means {
			if lines++; lines > mostLines {
				continue
			}
			name := publish.ScoreName(stage, mean.Port)
			s := index[name]
			if s == nil {
				s = &score{Name: name, Axes: []string{}}
				for _, at := range publish.CoordOf(l.Cell) {
					s.Axes = append(s.Axes, at.Axis)
				}
				index[name], list = s, append(list, s)
			}
			c := &scored{Cell: l.Cell, Direction: mean.Direction, Mean: number(mean.Value), N: l.N,
				Undefined: mean.Undefined, Items: -1, Low: number(math.NaN()), High: number(math.NaN()),
				IDs: []string{}}
			for _, at := range publish.CoordOf(l.Cell) {
				c.IDs = append(c.IDs, at.ID)
			}
			if len(c.IDs) != len(s.Axes) {
				continue
			}
			for _, file := range publish.ItemFiles(stage, mean.Port) {
				line := items[[2]string{file, l.Cell}]
				if line == nil || c.Items >= 0 {
					continue
				}
				if values += len(line.Values); values > mostValues {
					bare++
				} else {
					c.Items = m.list(line.IDs)
					for _, v := range line.Values {
						c.Values = append(c.Values, number(v))
					}
					_, low, high := interval.Mean(line.Values)
					c.Low, c.High = number(low), number(high)
				}
			}
			s.Cells = append(s.Cells, c)
		}
	}
	return list, max(lines-mostLines, 0), bare
}
