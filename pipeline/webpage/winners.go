package webpage

import (
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// A winnerTable is the best of each case, a metric a row and what else distinguishes cases a column.
type winnerTable struct {
	File    string     `json:"file"`
	Axes    []string   `json:"axes"` // of the rows, then of the columns
	Rows    []string   `json:"rows"`
	Columns []string   `json:"columns"`
	Cells   [][]winner `json:"cells"`
	Tested  bool       `json:"tested,omitempty"` // whether a test decided who differs from the best
}

// A winner is who has the best mean of a case, and how many others the test doesn't tell apart from them.
type winner struct {
	IDs  []string `json:"ids"` // none where the folder has no such case
	Near int      `json:"near,omitempty"`
}

// setWinners finds the first table with the rank of each competitor in each case.
func (m *model) setWinners() {
	for i := range m.Tables {
		if t := &m.Tables[i]; t.Len == len(t.Rows) && m.Winners == nil {
			m.Winners = m.winnersOf(t)
		}
	}
	if m.Winners != nil {
		m.Winners.countNear(m.Tables)
	}
}

// rankColumns returns the columns of the competitor and of the rank, −1 without one, and of the case, the
// metric first.
func (m *model) rankColumns(t *table) (who, rank int, keys []int) {
	who, rank = -1, -1
	for i, c := range t.Columns {
		switch {
		case c.Name == m.Rank:
			who = i
		case !c.Number:
			keys = append(keys, i)
		case c.Name == "rank":
			rank = i
		}
	}
	if i := slices.IndexFunc(keys, func(k int) bool { return t.Columns[k].Name == "metric" }); i > 0 {
		metric := keys[i]
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, metric)
	}
	return who, rank, keys
}

// winnersOf returns the winners of a table of ranks, nil if it is none.
func (m *model) winnersOf(t *table) *winnerTable {
	who, rank, keys := m.rankColumns(t)
	if who < 0 || rank < 0 || len(keys) == 0 {
		return nil
	}
	w := &winnerTable{File: t.File}
	for _, k := range keys {
		w.Axes = append(w.Axes, t.Columns[k].Name)
	}
	best := map[[2]string]float64{}
	ids := map[[2]string][]string{}
	for _, row := range t.Rows {
		var names []string
		for _, k := range keys[1:] {
			names = append(names, row[k])
		}
		at := [2]string{row[keys[0]], strings.Join(names, " ")}
		x, ok := typeset.Parse(row[rank])
		if !ok || math.IsNaN(x) {
			continue
		}
		w.Rows, w.Columns = withID(w.Rows, at[0]), withID(w.Columns, at[1])
		switch least, known := best[at]; {
		case !known || x < least:
			best[at], ids[at] = x, []string{row[who]}
		case x == least:
			ids[at] = append(ids[at], row[who])
		}
	}
	if len(w.Rows) == 0 {
		return nil
	}
	if len(keys) == 2 {
		for _, a := range m.Axes {
			if a.Name == w.Axes[1] {
				slices.SortStableFunc(w.Columns, func(x, y string) int {
					return slices.Index(a.IDs, x) - slices.Index(a.IDs, y)
				})
			}
		}
	}
	for _, r := range w.Rows {
		cells := make([]winner, len(w.Columns))
		for i, c := range w.Columns {
			cells[i].IDs = listOf(ids[[2]string{r, c}])
		}
		w.Cells = append(w.Cells, cells)
	}
	return w
}

func withID(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	return append(list, id)
}

// countNear reads the marks of a table with a column a case, the one that README.md draws asterisks from.
func (w *winnerTable) countNear(tables []table) {
	for _, t := range tables {
		for r, row := range w.Rows {
			for c, other := range w.Columns {
				name := strings.TrimSpace(row + " " + other)
				marks := slices.IndexFunc(t.Columns, func(x column) bool { return x.Marks == name })
				if marks < 0 || len(t.Rows) < t.Len {
					continue
				}
				w.Tested = true
				near := 0
				for _, values := range t.Rows {
					if values[marks] == "1" {
						near++
					}
				}
				cell := &w.Cells[r][c]
				cell.Near = max(near-len(cell.IDs), 0)
			}
		}
		if w.Tested {
			return
		}
	}
}
