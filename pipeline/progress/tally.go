package progress

import (
	"math"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A tally counts the events of a run.
type tally struct {
	now     Clock
	begin   time.Time
	planned bool                 // the run has begun
	cached  int                  // cells that were done when the run began
	spared  int                  // cells found cached since
	done    int                  // cells that have ended, in any way
	total   int                  // number of cells
	cells   map[string]cellTally // cells that have begun and haven't ended
	last    string               // the cell of the last event
	device  string               // of the last event
	compile int                  // programs compiled
	spoke   time.Time            // when a line about these was last written
	samples []sample             // of the last rateWindow
	items   int                  // finished items
	end     time.Time            // expected end of the run, smoothed; zero before a first estimate
	guessed time.Time            // time of that estimate
}

type cellTally struct {
	done   int
	device string    // of the last items
	spoke  time.Time // when a line about the cell was last written
}

type sample struct {
	at    time.Time
	items int
}

// Rates are taken over the last rateWindow.
const rateWindow = 10 * time.Second

func newTally(now Clock) tally {
	return tally{now: now, begin: now(), spoke: now(), cells: map[string]cellTally{}}
}

func (t *tally) add(e pipeline.Event) {
	at := t.now()
	if e.Left > 0 {
		t.guess(at, at.Add(e.Left))
	}
	switch e.Kind {
	case pipeline.Planned:
		t.begin, t.planned, t.cached, t.done, t.total = at, true, e.Done, e.Done, e.Total
	case pipeline.CellCompiling:
		t.compile++
		t.last, t.device = e.Cell, ""
	case pipeline.CellStarted:
		t.cells[e.Cell] = cellTally{spoke: at}
		t.last, t.device = e.Cell, e.Device
	case pipeline.Items:
		c, begun := t.cells[e.Cell]
		if !begun {
			c.spoke = at
		}
		t.items += e.Done - c.done
		c.done, c.device = e.Done, e.Device
		t.cells[e.Cell] = c
		t.last, t.device = e.Cell, e.Device
		t.samples = append(t.samples, sample{at, t.items})
		for len(t.samples) > 2 && at.Sub(t.samples[0].at) > rateWindow {
			t.samples = t.samples[1:]
		}
	case pipeline.CellDone, pipeline.CellCached, pipeline.CellFailed, pipeline.CellBlocked:
		delete(t.cells, e.Cell)
		if t.last == e.Cell {
			t.last = ""
		}
		t.done = min(t.done+1, t.total)
		if t.planned && e.Kind == pipeline.CellCached {
			t.spared++
		}
	case pipeline.Finished:
		t.done, t.total = e.Done, e.Total
	}
}

// rate returns the number of items finished in a second, 0 if unknown.
func (t *tally) rate() float64 {
	if len(t.samples) < 2 {
		return 0
	}
	first, last := t.samples[0], t.samples[len(t.samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.items-first.items) / took
}

// share returns the fraction of the run's time that has passed or, while its end is unknown, the fraction
// of its cells that are done.
func (t *tally) share() float64 {
	if left, ok := t.left(); ok {
		spent := t.now().Sub(t.begin)
		return spent.Seconds() / (spent + left).Seconds()
	}
	if t.total == t.cached {
		return 1
	}
	return float64(t.done-t.cached) / float64(t.total-t.cached)
}

// The expected end follows new estimates within a fraction of the time spent or, near the end, of the time
// left: estimates get better with time, and a burst of cheap cells says little about the others.
const (
	smoothing      = 2 * time.Second // at least
	smoothingShare = 0.25
)

// guess moves the expected end towards a new estimate.
func (t *tally) guess(now, end time.Time) {
	spent := now.Sub(t.begin)
	if t.end.IsZero() {
		t.end = end
	} else {
		slow := max(smoothing.Seconds(), smoothingShare*min(spent, t.end.Sub(now)).Seconds())
		follow := 1 - math.Exp(-now.Sub(t.guessed).Seconds()/slow)
		t.end = t.end.Add(time.Duration(follow * float64(end.Sub(t.end))))
	}
	t.guessed = now
}

// left returns the expected time until the end; ok is false before an estimate makes sense.
func (t *tally) left() (time.Duration, bool) {
	now := t.now()
	if t.end.IsZero() || now.Sub(t.begin) < 3*time.Second {
		return 0, false
	}
	return max(t.end.Sub(now), time.Second), true
}
