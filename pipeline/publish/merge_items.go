package publish

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
)

// mergeItems makes items/*.csv: the scores of the items, as long as the file is
// small.
func (m *merge) mergeItems() error {
	for _, o := range m.outputs("items") {
		s := m.newSheet(o)
		s.keys, s.numbers = []string{"item"}, []string{"value"}
		s.count = func(c *Counts) { c.Items++ }
		s.column = func(string) string { return scoreName(o.stage, o.port) }
		var scores []*Score // by block
		for _, c := range m.cells {
			for i := range c.Scores {
				if sc := &c.Scores[i]; c.State == Done && c.Stage == o.stage && sc.Port == o.port {
					s.blocks = append(s.blocks, &block{cell: c, keys: s.keys, numbers: []stages.Column{{Name: "value", Tolerance: max(sc.Measure.Tolerance, sc.Measure.ItemTolerance)}}})
					scores = append(scores, sc)
				}
			}
		}
		small, err := m.itemSheet(s, scores)
		if err != nil {
			return err
		}
		if !small {
			m.large = append(m.large, scoreName(o.stage, o.port))
		}
	}
	return nil
}

// itemSheet makes the file of a sheet of items, unless it would be large.
func (m *merge) itemSheet(s *sheet, scores []*Score) (small bool, err error) {
	size := 0
	for _, sc := range scores {
		for i := range sc.Items.Len() {
			id, err := sc.Items.ID(i)
			if err != nil {
				return false, err
			}
			if size += len(id) + len(",,0123456789abcdef\n"); size > itemsLimit {
				return false, nil
			}
		}
	}
	s.name()
	if _, ok := m.disk[s.file]; !ok {
		return m.newItems(s, scores)
	}
	for k, b := range s.blocks {
		order, err := byID(scores[k].Items)
		if err != nil {
			return false, err
		}
		for i := range scores[k].Items.Len() {
			at := order(i)
			id, err := scores[k].Items.ID(at)
			if err != nil {
				return false, err
			}
			b.rows = append(b.rows, blockRow{[]string{id}, []stages.Number{stages.Number(scores[k].Items.Value(at))}})
		}
	}
	all := m.tally
	m.tally = newTally() // what is said of the file counts if there is a file
	m.mergeSheet(s)
	t := m.tally
	m.tally = all
	b := s.encode()
	if len(b) > itemsLimit {
		return false, nil
	}
	m.tally.join(t)
	m.files[s.file] = b
	return true, nil
}

// A newFile isn't on disk yet and may be large: it's written row by row.
type newFile struct {
	size  int
	write func(io.Writer) error
}

// newItems prepares a sheet that isn't on disk yet.
func (m *merge) newItems(s *sheet, scores []*Score) (small bool, err error) {
	f := &newFile{write: func(w io.Writer) error { return s.writeItems(w, scores) }}
	var size counter
	if err := f.write(&size); err != nil {
		return false, err
	}
	if f.size = int(size); f.size > itemsLimit {
		return false, nil
	}
	for k, b := range s.blocks {
		if n := scores[k].Items.Len(); n > 0 {
			m.tally.add(added, Row{File: s.file, Cell: b.cell.Name, Rows: n})
		}
	}
	m.fresh[s.file] = f
	return true, nil
}

// A counter counts the bytes written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// writeItems writes scores as the rows of the sheet's blocks.
func (s *sheet) writeItems(to io.Writer, scores []*Score) error {
	w := csv.NewWriter(to)
	columns := s.columns()
	w.Write(append(slices.Clone(columns), definitionColumn))
	row := make([]string, len(columns)+1)
	for k, b := range s.blocks {
		order, err := byID(scores[k].Items)
		if err != nil {
			return err
		}
		own := s.columnsOf(b)
		for i := range scores[k].Items.Len() {
			at := order(i)
			id, err := scores[k].Items.ID(at)
			if err != nil {
				return err
			}
			r := s.record(b, own, blockRow{[]string{id}, []stages.Number{stages.Number(scores[k].Items.Value(at))}})
			for c, column := range columns {
				row[c] = r.fields.get(column)
			}
			row[len(columns)] = b.cell.Definition.Short()
			w.Write(row)
		}
	}
	w.Flush()
	return w.Error()
}

// byID returns a function that returns the positions of items in the order of
// their ids.
func byID(items Items) (func(int) int, error) {
	n := items.Len()
	last := ""
	for i := 0; ; i++ {
		if i == n {
			return func(i int) int { return i }, nil
		}
		id, err := items.ID(i)
		if err != nil {
			return nil, err
		}
		if id < last {
			break
		}
		last = id
	}
	ids, order := make([]string, n), make([]int32, n)
	for i := range ids {
		var err error
		if ids[i], err = items.ID(i); err != nil {
			return nil, err
		}
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(ids[a], ids[b]) })
	return func(i int) int { return int(order[i]) }, nil
}
