package pipeline

import (
	"math"
	"runtime"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// An Estimate is the cost of a run, estimated from measurements of earlier runs.
type Estimate struct {
	Seconds           float64
	Loading           float64 // of Seconds, to compile programs
	Programs          float64 // to compile; a part of one for cells that share it
	Forward, Backward int     // passes
	Unknown           int     // cells of unknown cost
	Elsewhere         int     // cells that another kind of machine measured
}

// Add adds another estimate.
func (e *Estimate) Add(o Estimate) {
	e.Seconds += o.Seconds
	e.Loading += o.Loading
	e.Programs += o.Programs
	e.Forward += o.Forward
	e.Backward += o.Backward
	e.Unknown += o.Unknown
	e.Elsewhere += o.Elsewhere
}

// Estimate estimates the cost, on this engine's devices, of the cells of a step that a run would execute.
// Items that an earlier run left in an unfinished cell count as done.
func (o *Outlook) Estimate(s *plan.Step) (e Estimate) {
	cells, longest := 0, 0.0
	for _, c := range s.Cells {
		if kind := o.ahead[c.Index].Kind; kind == IsCached || kind == Broken {
			continue
		}
		cells++
		one := o.cost(o.resolver.Cells[c.Index], 0)
		e.Add(one)
		longest = max(longest, one.Seconds)
	}
	if cells == 0 {
		return e
	}
	workers := runtime.GOMAXPROCS(0)
	if s.Cells[0].Stage.Device {
		workers = o.devices
	}
	e.spread(workers)
	if s.Cells[0].Stage.Relation == stages.Whole { // its work isn't divided
		e.Seconds = max(e.Seconds, longest)
	}
	return e
}

// spread divides the time among slots.
func (e *Estimate) spread(workers int) {
	e.Seconds /= float64(workers)
	e.Loading /= float64(workers)
}

// Cost returns the seconds of one slot that a call of a cell took in an earlier run, and those before in
// which its programs were loaded, whatever of it is stored. ok is false if nothing is known.
func (o *Outlook) Cost(c *plan.Cell) (call, loading float64, ok bool) {
	speed, ok := o.speeds.of(o.resolver.Cells[c.Index])
	if !ok {
		return 0, 0, false
	}
	return speed.Seconds / float64(speed.Calls), speed.Loading, true
}

// cost estimates the cost of a cell on one slot, with the given number of its calls done.
func (o *Outlook) cost(n *resolve.Cell, done int) Estimate {
	speed, ok := o.speeds.of(n)
	calls := o.calls(n)
	if !ok || calls < 0 {
		return Estimate{Unknown: 1}
	}
	return o.scaled(speed, float64(max(calls-done, 0)))
}

// scaled returns the cost of so many calls. That of comparing some of them with float32 is part of it on a
// processor, whose cores do both.
func (o *Outlook) scaled(m measured, calls float64) Estimate {
	scale, comparing := calls/float64(m.Calls), 0.0
	if m.Compared > 0 && o.resolver.Class == "cpu" {
		comparing = m.Comparing / float64(m.Compared) * execute.Rounded(calls, o.compare, m.among)
	}
	e := Estimate{
		Seconds:  m.Loading + m.Seconds*scale + comparing,
		Loading:  m.Loading,
		Programs: m.programs,
		Forward:  int(math.Round(float64(m.Forward) * scale)),
		Backward: int(math.Round(float64(m.Backward) * scale)),
	}
	if m.elsewhere {
		e.Elsewhere = 1
	}
	return e
}

// calls returns the number of calls of a cell, -1 if unknown: see [Speed.Calls].
func (o *Outlook) calls(n *resolve.Cell) int {
	if n.Stage.Relation != stages.Whole {
		if items := o.Items(n.Cell); items >= 0 && n.Stage.Relation == stages.Each {
			return items
		}
		if n.ID().Sources != nil && n.Stage.Primary() < 0 {
			return n.ID().Sources.Len()
		}
		if from := before(n); from != nil {
			return o.Likely(from)
		}
		return -1
	}
	total := 0
	for p := range n.Inputs {
		if !n.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range n.Inputs[p].Edges {
			items := o.Likely(e.From)
			if items < 0 {
				return -1
			}
			total += items
		}
	}
	return max(total, 1)
}

// before returns the cell for whose items n is called, nil if n makes the list of them.
func before(n *resolve.Cell) *plan.Cell {
	for _, p := range n.Leading() {
		return n.Inputs[p].Edges[0].From
	}
	return nil
}

// Likely returns the number of items of a cell or, if that is unknown, the number that it would make from
// its inputs if it made as many from each as last time. It is -1 if unknown.
func (o *Outlook) Likely(c *plan.Cell) int {
	if items := o.Items(c); items >= 0 {
		return items
	}
	n := o.resolver.Cells[c.Index]
	calls := o.calls(n)
	if n.Stage.Relation == stages.Each || calls < 0 {
		return calls
	}
	speed, ok := o.speeds.of(n)
	if !ok {
		return -1
	}
	return int(math.Round(float64(speed.Made) * float64(calls) / float64(speed.Calls)))
}
