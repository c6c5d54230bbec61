package pipeline

import "github.com/runexp/runexp/pipeline/plan"

// bytesSample is how many cells of a step are looked at to estimate its bytes.
const bytesSample = 16

// Bytes estimates how many bytes the items of a step's cells take on the disk if
// they are kept, see [Step.Keep]: the mean size of an item in the newest records of
// some of the cells, for all the items that are known. ok is false before a cell of
// the step has ever run, and while nobody knows how many items there are. A step
// without items has none.
func (o *Outlook) Bytes(s *plan.Step) (bytes int64, ok bool) {
	if !hasItems(s) || len(s.Cells) == 0 {
		return 0, true
	}
	var items int64
	for _, c := range s.Cells {
		n := o.Items(c)
		if n < 0 {
			return 0, false
		}
		items += int64(n)
	}
	if items == 0 {
		return 0, true
	}
	var seen, size int64
	for i := range min(bytesSample, len(s.Cells)) {
		n, b := o.recorded(s.Cells[i*len(s.Cells)/min(bytesSample, len(s.Cells))])
		seen, size = seen+n, size+b
	}
	if seen == 0 {
		return 0, false
	}
	return int64(float64(size) / float64(seen) * float64(items)), true
}

func hasItems(s *plan.Step) bool {
	for _, c := range s.Cells {
		for _, p := range c.Stage.Outputs {
			if p.Type.Items {
				return true
			}
		}
	}
	return false
}

// recorded returns the number of items of a cell when it was last executed, and
// their bytes over all ports.
func (o *Outlook) recorded(c *plan.Cell) (items, bytes int64) {
	a, ok := o.store.Latest(o.plan.Name, c.String())
	if !ok || len(a.Outputs) == 0 {
		return 0, 0
	}
	hit, ok := o.store.Lookup(a.Key, "")
	if !ok {
		return 0, 0
	}
	for p := range a.Outputs {
		b, err := o.store.PayloadBytes(hit, p)
		if err != nil {
			return 0, 0
		}
		_, n, _ := hit.Output(p)
		items = max(items, int64(n))
		bytes += b
	}
	return items, bytes
}
