package execute

import (
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/resolve"
)

// A Speed is the cost of calls of a cell, from the last run that executed any. The store keeps it for
// estimates; no key and no result depends on it.
type Speed struct {
	Calls    int     `json:"calls"`    // items; for a Whole stage all items that it reads, or 1
	Made     int     `json:"made"`     // items on the first output port
	Forward  int     `json:"forward"`  // passes
	Backward int     `json:"backward"` // passes
	Seconds  float64 `json:"seconds"`  // of one slot, without loading
	Loading  float64 `json:"loading"`  // seconds of all slots that wait for programs
	Programs int     `json:"programs"` // that were compiled meanwhile

	Compared  int     `json:"compared,omitempty"`  // items that a processor computed, too
	Comparing float64 `json:"comparing,omitempty"` // seconds of a core for that
}

// Add adds another cost.
func (s *Speed) Add(o Speed) {
	s.Calls += o.Calls
	s.Made += o.Made
	s.Forward += o.Forward
	s.Backward += o.Backward
	s.Seconds += o.Seconds
	s.Loading += o.Loading
	s.Programs += o.Programs
	s.Compared += o.Compared
	s.Comparing += o.Comparing
}

// Passes returns how many passes there were.
func (s *Speed) Passes() int { return s.Forward + s.Backward }

// A meter adds up a cell's speed during a run.
type meter struct {
	mu    sync.Mutex
	speed Speed
	kept  Speed // from earlier runs
}

// spent returns the cost of the cell in this run.
func (m *meter) spent() Speed {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.kept
	s.Add(m.speed)
	return s.sound()
}

func (m *meter) add(s Speed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.speed.Add(s)
}

// clock measures w's work on its slot. The result stops it and divides the cost among the cells that shared
// the work.
func (w *Worker) clock() (stop func(cells ...*resolve.Cell)) {
	w.slot.Take()
	began := time.Now()
	return func(cells ...*resolve.Cell) {
		took, spent, n := time.Since(began), w.slot.Take(), len(cells)
		for k, c := range cells {
			portion := func(all int) int { return (all + k) / n } // they add up to the whole
			w.executor.of(c).meter.add(Speed{
				Forward: portion(spent.Forward), Backward: portion(spent.Backward),
				Seconds: (took - spent.Loading).Seconds() / float64(n), // a first run was in an earlier chunk
				Loading: spent.Loading.Seconds() / float64(n), Programs: portion(spent.Programs),
			})
		}
	}
}

// made counts the items on the first output port.
func made(outs []callOutput) (items int) {
	for _, ports := range outs {
		if len(ports) > 0 {
			items += len(ports[0])
		}
	}
	return items
}

// take returns the cost since the last take.
func (m *meter) take() Speed {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.speed
	m.kept.Add(s)
	m.speed = Speed{}
	return s.sound()
}

// sound returns the cost without negative time, where an earlier cell had the first run of a program.
func (s Speed) sound() Speed {
	s.Seconds = max(s.Seconds, 0)
	return s
}

// Spent returns the cost of a cell in this run, and the number of calls of the job that executes it, 0
// while unknown.
func (x *Executor) Spent(n *resolve.Cell) (spent Speed, calls int) {
	if !x.worked.Load() {
		return spent, 0
	}
	w := x.of(n)
	return w.meter.spent(), int(w.total.Load())
}
