package pipeline

import (
	"time"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/schedule"
)

// A forecast estimates the end of a run, from the cost of its cells so far and in earlier runs.
type forecast struct {
	cells []ahead // by index in the plan
	due   time.Time
}

// An ahead is a forecast's data about a cell.
type ahead struct {
	step    string
	calls   int           // as in Speed, −1 while unknown
	spent   execute.Speed // in this run
	earlier execute.Speed // without calls if unknown
	asked   bool          // earlier was looked up
	over    bool          // the cell has ended
}

// forecasts are this far apart: each examines every cell.
const forecasts = time.Second

// foresee updates the forecast, which later events contain, unless all cells are cached. Only the loop calls
// it.
func (r *run) foresee(began time.Time) {
	f, now := &r.forecast, time.Now()
	if now.Before(f.due) {
		return
	}
	if f.cells == nil {
		if r.schedule.Count(schedule.Cached) == len(r.plan.Cells) {
			return
		}
		f.cells = make([]ahead, len(r.plan.Cells))
	}
	o := &Outlook{store: r.engine.Store, resolver: r.resolver, speeds: r.speeds}
	for i, n := range r.resolver.Cells {
		c := &f.cells[i]
		if c.over {
			continue
		}
		total := 0
		c.step, c.over = n.Step.Name, r.schedule.State(n.Cell).Finished()
		if c.spent, total = r.executor.Spent(n); c.over {
			continue
		}
		if !c.asked {
			earlier, _ := r.speeds.of(n)
			c.earlier = earlier.Speed
			c.asked, c.calls = true, -1
		}
		if total > 0 {
			c.calls = total
		} else if c.calls < 0 {
			c.calls = o.calls(n)
		}
	}
	if left, ok := timeLeft(f.cells, now.Sub(began), len(r.engine.Devices)); ok {
		r.end.Store(now.Add(left).UnixNano())
	}
	f.due = time.Now().Add(forecasts)
}

// timeLeft estimates the time of the cells that haven't ended, by slots that are as busy as since the run
// began. ok is false while nothing is known.
//
// A call takes as long as the cell's calls have taken; or else as in an earlier run, times the ratio of
// both for cells that have both; or else as the calls of other cells of the same stage in the experiment. A
// cell of unknown cost counts as an average one.
func timeLeft(cells []ahead, elapsed time.Duration, slots int) (left time.Duration, ok bool) {
	type sum struct{ seconds, calls float64 }
	steps := map[string]*sum{}
	var busy, took, expected float64
	for i := range cells {
		c := &cells[i]
		busy += c.spent.Seconds + c.spent.Loading
		if c.spent.Calls == 0 {
			continue
		}
		s := steps[c.step]
		if s == nil {
			s = &sum{}
			steps[c.step] = s
		}
		s.seconds, s.calls = s.seconds+c.spent.Seconds, s.calls+float64(c.spent.Calls)
		if c.earlier.Calls > 0 {
			took += c.spent.Seconds
			expected += c.earlier.Seconds / float64(c.earlier.Calls) * float64(c.spent.Calls)
		}
	}
	ratio := 1.0
	if took > 0 && expected > 0 {
		ratio = took / expected
	}
	var known, unknown int
	var all, rest float64 // of the cells with a known cost
	for i := range cells {
		c := &cells[i]
		spent, calls := c.spent.Seconds+c.spent.Loading, float64(max(c.calls-c.spent.Calls, 0))
		more := 0.0
		switch s := steps[c.step]; {
		case c.over:
			if c.spent.Calls == 0 {
				continue // it was cached
			}
		case c.calls < 0:
			unknown++
			continue
		case c.spent.Calls > 0:
			more = c.spent.Seconds / float64(c.spent.Calls) * calls
		case c.earlier.Calls > 0:
			more = ratio*c.earlier.Seconds/float64(c.earlier.Calls)*calls + c.earlier.Loading
		case s != nil:
			more = s.seconds / s.calls * calls
		default:
			unknown++
			continue
		}
		known++
		all, rest = all+spent+more, rest+more
	}
	if known == 0 {
		return 0, false
	}
	rest += all / float64(known) * float64(unknown)
	// Running work counts once it is finished: at first slots count as busy.
	const first = 2 // seconds
	parallel := (busy + first*float64(slots)) / (elapsed.Seconds() + first)
	return time.Duration(rest / parallel * float64(time.Second)), true
}
