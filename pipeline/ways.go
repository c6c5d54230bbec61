package pipeline

import (
	"runtime"

	"github.com/runexp/runexp/pipeline/plan"
)

// Ways are what it costs to estimate a step's answer from cells that are computed again for a part of their
// items, and what it would cost to compute these for all items in the first place.
type Ways struct {
	Step        *plan.Step
	Value       string // of the parameter that is replaced
	Again       [2]int // items that are computed again, of the cell with the most: at least, at most
	Items       int    // of the cell with the most
	Least, Most Estimate
	Whole       Estimate
}

// Ways returns them by step, of cached cells, too. The number of items is between bounds until what decides
// it has been computed.
func (o *Outlook) Ways() (list []*Ways) {
	counted := map[*Ways]map[*plan.Cell]bool{}
	for _, again := range o.resolver.Plan.Again {
		var w *Ways
		for _, known := range list {
			if known.Step == again.Consumer.Step {
				w = known
			}
		}
		if w == nil {
			w = &Ways{Step: again.Consumer.Step, Value: again.Value}
			list, counted[w] = append(list, w), map[*plan.Cell]bool{}
		}
		o.addWays(w, again, counted[w])
	}
	return list
}

// addWays adds the cells of one input that haven't been counted.
func (o *Outlook) addWays(w *Ways, again plan.Again, counted map[*plan.Cell]bool) {
	var drawn [2]int
	for _, copied := range o.resolver.Plan.Cells { // in order: sums of times are rounded alike
		c := again.Of[copied]
		if c == nil || counted[copied] {
			continue
		}
		counted[copied] = true
		items := o.Likely(c)
		low, high := o.Items(copied), o.Items(copied)
		if low < 0 {
			low, high = 0, max(0, items)
			if again.Count > 0 {
				low, high = min(again.Count, high), min(again.Count, high)
			}
		}
		w.Items, drawn = max(w.Items, items), [2]int{max(drawn[0], low), max(drawn[1], high)}
		w.Least.Add(o.costFor(copied, low))
		w.Most.Add(o.costFor(copied, high))
		if !counted[c] {
			counted[c] = true
			w.Least.Add(o.costFor(c, items))
			w.Most.Add(o.costFor(c, items))
			w.Whole.Add(o.costFor(copied, items))
		}
	}
	for i := range drawn {
		w.Again[i] = min(w.Again[i]+drawn[i], w.Items)
	}
}

// costFor estimates what a cell costs for so many items, on all slots.
func (o *Outlook) costFor(c *plan.Cell, items int) Estimate {
	speed, ok := o.speeds.of(o.resolver.Cells[c.Index])
	if !ok || items < 0 {
		return Estimate{Unknown: 1}
	}
	e := o.scaled(speed, float64(items))
	workers := runtime.GOMAXPROCS(0)
	if c.Stage.Device {
		workers = o.devices
	}
	e.spread(workers)
	return e
}
