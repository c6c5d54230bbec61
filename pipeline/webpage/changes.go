package webpage

import (
	"slices"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
)

// changes are the differences from the version before.
type changes struct {
	Before    string         `json:"before"`
	Summary   string         `json:"summary"` // what changed, in a sentence
	Answers   [2]string      `json:"answers"`
	Added     []string       `json:"added"`
	Removed   []string       `json:"removed"`
	Redefined map[string]int `json:"redefined"`
	Params    [][]string     `json:"params"`
	Scores    []scoreChange  `json:"scores"`
	Compared  int            `json:"compared"`
	Ranks     [][]string     `json:"ranks"`
	Figures   []figure       `json:"figures"`
	Was       []*score       `json:"was"`               // scores of the maps that changed, in the version before
	Missing   string         `json:"missing,omitempty"` // why no maps of the version before are known
}

// A scoreChange is a mean that changed, with the interval of the paired differences.
type scoreChange struct {
	Cell      string           `json:"cell"`
	Name      string           `json:"name"`
	Direction stages.Direction `json:"direction,omitempty"`
	Was       number           `json:"was"`
	Is        number           `json:"is"`
	Change    number           `json:"change"`
	Low       number           `json:"low"`
	High      number           `json:"high"`
	Paired    int              `json:"paired"`
	Verdict   string           `json:"verdict"` // better, worse or changed, "" where that isn't known
	Within    string           `json:"within"`  // whether it is within the tolerance; "" of another definition
}

// compare compares the folder with the version before.
func (m *model) compare(now, before Source, f, old *publish.Folder) (*changes, error) {
	d, err := publish.Diff(before.Version, now.Version)
	if err != nil {
		return nil, err
	}
	c := &changes{Before: before.Version.Name, Summary: d.Summary(), Answers: d.Answers,
		Added: d.Added, Removed: d.Removed,
		Redefined: d.Redefined, Params: d.ParamRows(), Compared: d.Compared, Ranks: d.RankRows(),
		Missing: before.Missing}
	for _, s := range d.Scores {
		one := scoreChange{Cell: s.Cell, Direction: s.B.Direction, Was: number(s.A.Value),
			Name: publish.ScoreName(publish.StageOf(s.Cell), s.B.Port), Is: number(s.B.Value),
			Change: number(s.Change), Low: number(s.Low), High: number(s.High), Paired: s.Paired,
			Within: s.Within()}
		if s.Certain() {
			one.Verdict = s.Verdict()
		}
		if s.Paired < 2 {
			one.Low, one.High = one.Change, one.Change
		}
		c.Scores = append(c.Scores, one)
	}
	was := map[string]*publish.Picture{}
	for _, p := range old.Pictures {
		was[p.File] = p
	}
	for _, p := range m.Figures {
		i := slices.IndexFunc(f.Pictures, func(q *publish.Picture) bool { return q.File == p.File })
		q := was[p.File]
		if q != nil && q.Readable() && !slices.Equal(q.Data, f.Pictures[i].Data) {
			p.Before = dataURL(p.File, q.Data)
			c.Figures = append(c.Figures, p)
		}
	}
	return c, nil
}

// linesOf returns the cells of a folder whose coordinates agree with those of changed maps on every axis
// that both have.
func linesOf(f *publish.Folder, changed []*results.CellMaps) (lines []*publish.Line) {
	for _, l := range f.Lines {
		at := map[string]string{}
		for _, c := range publish.CoordOf(l.Cell) {
			at[c.Axis] = c.ID
		}
		if slices.ContainsFunc(changed, func(p *results.CellMaps) bool {
			return !slices.ContainsFunc(p.Coord, func(c stages.Coord) bool {
				id, known := at[c.Axis]
				return known && id != c.ID
			})
		}) {
			lines = append(lines, l)
		}
	}
	return lines
}
