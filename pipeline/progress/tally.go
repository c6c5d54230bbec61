package progress

import (
	"math"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A tally counts what the events report.
type tally struct {
	now     Clock
	begin   time.Time
	planned bool                 // the run has begun
	cached  int                  // cells that were done when the run began
	spared  int                  // cells found cached since
	done    int                  // cells that are finished by now, whatever became of them
	total   int                  // cells
	cells   map[string]cellTally // that have begun and aren't finished
	last    string               // the cell of the last event
	device  string               // of the last event
	compile int                  // programs compiled
	spoke   time.Time            // when a line about these was last written
	samples []sample             // of the last rateWindow
	items   int                  // finished
	end     time.Time            // when the run is expected to end, smoothed; zero before a first guess
	guessed time.Time            // when that was guessed
}

type cellTally struct {
	done   int
	share  float64
	device string    // of the last items
	spoke  time.Time // when a line about it was last written
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
		c.done, c.share, c.device = e.Done, float64(e.Done)/float64(max(e.Total, 1)), e.Device
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

// rate returns the items that are finished in a second, 0 where that isn't known.
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

// share returns how much of the run's own work is done: every cell counts alike, cells under way count by
// their items.
func (t *tally) share() float64 {
	if t.total == t.cached {
		return 1
	}
	done := float64(t.done - t.cached)
	for _, c := range t.cells {
		done += c.share
	}
	return done / float64(t.total-t.cached)
}

// The expected end follows a new guess in about this share of the time left, and never faster than in
// smoothing: cells count alike and take unlike times, so that a single guess is worth little.
const (
	smoothing      = 15 * time.Second
	smoothingShare = 0.25
)

// left estimates how long the rest takes; it's false before an estimate makes sense.
func (t *tally) left() (time.Duration, bool) {
	now, share := t.now(), t.share()
	spent := now.Sub(t.begin)
	if spent < 3*time.Second || share < 0.01 || share >= 1 {
		return 0, false
	}
	guess := now.Add(time.Duration(float64(spent) * (1 - share) / share))
	if t.end.IsZero() {
		t.end = guess
	} else {
		slow := max(smoothing.Seconds(), smoothingShare*t.end.Sub(now).Seconds())
		follow := 1 - math.Exp(-now.Sub(t.guessed).Seconds()/slow)
		t.end = t.end.Add(time.Duration(follow * float64(guess.Sub(t.end))))
	}
	t.guessed = now
	return max(t.end.Sub(now), time.Second), true
}
