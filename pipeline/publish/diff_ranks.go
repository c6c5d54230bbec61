package publish

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
)

// rankColumns are the columns that rank rows: by itself, or by the order of its numbers.
var rankColumns = []string{"rank", "mean rank"}

// A RankChange is a row of tables with another rank.
type RankChange struct {
	Tables      []string // that have the same change
	Row         TableKey // of the first of them
	Before, Now float64
}

// A TableKey names a row of a table by the texts of its first columns.
type TableKey struct {
	Table   string
	Columns []string
	Texts   []string
}

// A ranking has the ranks of a table's rows in two folders.
type ranking struct {
	table string
	stage string
	keys  []string // columns that name a row
	a, b  map[string]place
}

// A place is a row's rank, among the rows with the same keys before the last one.
type place struct {
	rank  string
	value float64
	among string
	texts []string // of the row's keys
}

// ranks compares the ranks of rows in tables that have them. Tables with the same change of the same row say
// it once.
func (d *Difference) ranks(x, y *publishedFolder) {
	var all []*ranking
	for name, rows := range x.tables {
		if r := rankingOf(rows, y.tables[name]); r != nil {
			r.table, r.stage = strings.TrimSuffix(path.Base(name), ".csv"), x.stageOfFile(name)
			all = append(all, r)
		}
	}
	published := func(r *ranking) int {
		if i := slices.Index(x.stages, r.stage); i >= 0 {
			return i
		}
		return len(x.stages)
	}
	slices.SortFunc(all, func(p, q *ranking) int {
		return cmp.Or(cmp.Compare(len(p.keys), len(q.keys)), cmp.Compare(published(p), published(q)),
			cmp.Compare(p.table, q.table))
	})
	if len(all) > 0 {
		d.leading = all[0]
	}
	said := map[[3]string]int{}
	for _, r := range all {
		for _, row := range r.rows() {
			was, is := r.a[row].rank, r.b[row].rank
			if is == "" {
				d.OnlyA = append(d.OnlyA, r.key(r.a[row]))
			}
			if was == is || is == "" {
				continue
			}
			change := [3]string{row, was, is}
			if at, ok := said[change]; ok {
				d.Ranks[at].Tables = append(d.Ranks[at].Tables, r.table)
				continue
			}
			said[change] = len(d.Ranks)
			d.Ranks = append(d.Ranks, RankChange{[]string{r.table}, r.key(r.a[row]), r.a[row].value,
				r.b[row].value})
		}
		back := &ranking{a: r.b}
		for _, row := range back.rows() {
			if r.a[row].rank == "" {
				d.OnlyB = append(d.OnlyB, r.key(r.b[row]))
			}
		}
	}
}

// RankRows returns the changes of ranks as texts: the tables, the row, and its two ranks.
func (d *Difference) RankRows() (rows [][]string) {
	for _, r := range d.Ranks {
		rows = append(rows, []string{strings.Join(r.Tables, ", "), strings.Join(r.Row.Texts, ", "),
			typeset.Brief(r.Before, 4), typeset.Brief(r.Now, 4)})
	}
	return rows
}

func (r *ranking) key(p place) TableKey { return TableKey{r.table, r.keys, p.texts} }

// rows returns the rows of the first folder, by their ranks in it.
func (r *ranking) rows() []string {
	return slices.SortedFunc(maps.Keys(r.a), func(p, q string) int {
		x, y := r.a[p], r.a[q]
		return cmp.Or(cmp.Compare(x.among, y.among), cmp.Compare(x.value, y.value), cmp.Compare(p, q))
	})
}

// rankingOf returns the ranks of the rows of two versions of a table, nil for a table without ranks. The file
// doesn't say which columns are keys. Keys come first, so they are taken to be the fewest first columns in
// which all rows differ.
func rankingOf(a, b []*TableRow) *ranking {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	columns := a[0].columns
	column := slices.IndexFunc(rankColumns, func(c string) bool { return slices.Contains(columns, c) })
	if column < 0 {
		return nil
	}
	const mostKeys = 64 // a table's axes and texts
	for n := 1; n <= min(slices.Index(columns, rankColumns[column]), mostKeys); n++ {
		key := func(r *TableRow) string { return r.texts(columns[:n]) }
		if len(groupBy(a, key)) == len(a) && len(groupBy(b, key)) == len(b) {
			return &ranking{keys: columns[:n], a: places(a, columns[:n], rankColumns[column]),
				b: places(b, columns[:n], rankColumns[column])}
		}
	}
	return nil
}

// places returns the rows' ranks by their keys: equal numbers of a column that orders share a rank. Rows
// without a number have none.
func places(rows []*TableRow, keys []string, column string) map[string]place {
	of := map[string]place{}
	among := map[string][]float64{}
	for _, r := range rows {
		if value, ok := r.number(column); ok && !math.IsNaN(value) {
			p := place{value: value, among: r.texts(keys[:len(keys)-1])}
			for _, k := range keys {
				p.texts = append(p.texts, r.get(k))
			}
			of[r.texts(keys)], among[p.among] = p, append(among[p.among], value)
		}
	}
	for _, values := range among {
		slices.Sort(values)
	}
	for key, p := range of {
		if column != "rank" {
			before, _ := slices.BinarySearch(among[p.among], p.value)
			p.value = float64(before + 1)
		}
		p.rank = typeset.Brief(p.value, 4)
		of[key] = p
	}
	return of
}

// summary says which ranks stayed, "" without ranks.
func (r *ranking) summary() string {
	if r == nil {
		return ""
	}
	rows := slices.DeleteFunc(r.rows(), func(row string) bool { return r.b[row].rank == "" })
	groups := map[string]bool{}
	same := 0 // from the first rank on
	for i, row := range rows {
		groups[r.a[row].among] = true
		if same == i && r.a[row].rank == r.b[row].rank {
			same++
		}
	}
	best := func(of map[string]place) (names []string) {
		for _, row := range slices.Sorted(maps.Keys(of)) {
			if of[row].value == 1 {
				names = append(names, row)
			}
		}
		return names
	}
	moved := 0
	for _, row := range rows {
		if r.a[row].rank != r.b[row].rank {
			moved++
		}
	}
	switch was, is := best(r.a), best(r.b); {
	case len(rows) < 2:
		return ""
	case moved == 0:
		return "no rank in " + r.table + " changed"
	case len(groups) > 1:
		return fmt.Sprintf("%d of %s in %s changed", moved, count(len(rows), "rank"), r.table)
	case same == 1:
		return fmt.Sprintf("in %s, rank 1 of %d is unchanged", r.table, len(rows))
	case same > 1:
		last := r.a[rows[same-1]].rank
		return fmt.Sprintf("in %s, ranks 1–%s of %d are unchanged", r.table, last, len(rows))
	case !slices.Equal(was, is) && len(was) > 0 && len(is) > 0:
		return fmt.Sprintf("first in %s is %s, was %s", r.table, some(is, namedSubjects),
			some(was, namedSubjects))
	}
	return fmt.Sprintf("%d of %s in %s changed", moved, count(len(rows), "rank"), r.table)
}
