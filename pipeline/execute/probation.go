package execute

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// A Probation says by how much the results of a run's devices deviate from the processor's.
//
// Libraries for other devices have computed wrong numbers without an error. So every class of devices but the
// processor is on probation with each program: a stage, its parameters and its model. The first chunk, or
// sixteen items of a large one, and then one item in [Config.Compare], chosen by its key, is computed on the
// processor too, before anything of the chunk is recorded. An item is off if one of its quantities deviates
// beyond its tolerance: see [stages.Deviated]. A single item may be off without a fault: a path of discrete
// choices, or a kink, makes a large difference of the last bit. So while one of the last twenty compared
// items is off, all items are compared. The class is refused for the program if at least two of the last
// twenty and more than an eighth of them are off, if one has another shape or is undefined elsewhere, or if
// the result of a Whole stage is off. Then the cell fails, results that this class and runtime have stored of
// the program are no longer taken, and later runs fail at once, except for cells that are forced and where
// tolerances have changed.
type Probation struct {
	Items    int           // number of compared items
	Took     time.Duration // the processor's time
	Programs []Compared    // by stage, in the order of their names
}

// Compared says by how much a stage's items deviate on a device.
type Compared struct {
	Stage     string
	Precision string // in which the items were computed
	Items     int
	Off       int // number of items with a deviation beyond the tolerance

	Largest stages.Deviated // the one that exhausts its tolerance most
}

// usualCompare is the usual [Config.Compare].
const usualCompare = 20

// window is the number of last compared items by which a class is judged.
const window = 20

// A trial is a program's probation in a run.
type trial struct {
	program stages.Digest
	judged  chan struct{} // closed once the first chunk is judged

	mu      sync.Mutex // guards the rest
	begun   bool       // a first chunk has begun
	recent  []bool     // whether the last compared items are off
	refused error
	Compared
	took time.Duration
}

// trials are the trials of a run, by program.
type trials struct {
	mu sync.Mutex // guards of
	of map[stages.Digest]*trial
}

// at returns the trial of a program of a stage.
func (ts *trials) at(program stages.Digest, n *resolve.Cell) *trial {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[program]
	if t == nil {
		if ts.of == nil {
			ts.of = map[stages.Digest]*trial{}
		}
		t = &trial{program: program, judged: make(chan struct{})}
		t.Stage, t.Precision = n.Stage.Name, stages.PrecisionOf(n.Params)
		ts.of[program] = t
	}
	return t
}

// sum adds up the trials by stage.
func (ts *trials) sum() (p Probation) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	stage := map[string]Compared{}
	for _, t := range ts.of {
		t.mu.Lock()
		name := t.Stage + " " + t.Precision
		c := stage[name]
		c.Stage, c.Precision = t.Stage, t.Precision
		c.Items, c.Off = c.Items+t.Items, c.Off+t.Off
		if t.Largest.Compare(c.Largest) > 0 {
			c.Largest = t.Largest
		}
		p.Items, p.Took = p.Items+t.Items, p.Took+t.took
		stage[name] = c
		t.mu.Unlock()
	}
	for _, name := range slices.Sorted(maps.Keys(stage)) {
		p.Programs = append(p.Programs, stage[name])
	}
	return p
}

// compares reports whether the results of a cell are compared with a processor's in float32.
func (x *Executor) compares(n *resolve.Cell) bool {
	otherwise := x.Devices[0].Class != "cpu" || stages.PrecisionOf(n.Params) != stages.Float32
	return n.Stage.Device && otherwise && x.Compare >= 0
}

// enrol selects the items of an execution for comparison, if a device computed it: see [Worker.compare].
func (w *Worker) enrol(x *execution) {
	n := x.task.member.cell
	if !w.executor.compares(n) {
		return
	}
	x.trial = w.executor.trials.at(w.executor.Resolver.Keys.Trial(x.task.member.id), n)
	x.trial.mu.Lock()
	x.first, x.trial.begun = !x.trial.begun, true
	x.trial.mu.Unlock()
	x.sample, x.made = *x.env, x.outs
}

// firstItems bounds the compared items of a program's first chunk: the size of a processor's chunk.
const firstItems = 16

// firstRounded is the same for a precision on the processor, whose sample takes as long as many items.
const firstRounded = 4

// Rounded returns about how many items of a cell in another precision the processor computes in float32, too,
// given [Config.Compare] and the number of cells of one program.
func Rounded(items float64, compare, cells int) float64 {
	if compare < 0 {
		return 0
	}
	return min(items, firstRounded/float64(max(cells, 1))+items/float64(cmp.Or(compare, usualCompare)))
}

// choose reduces an execution to the items to compare: the beginning of the first one of its program, all
// items of a suspected one, or else the ones that their keys choose.
func (w *Worker) choose(x *execution, suspected bool) {
	calls, outs := x.sample.Calls, x.made
	switch {
	case suspected || x.task.member.cell.Stage.Relation == stages.Whole:
		return
	case x.first:
		n := min(len(calls), firstItems)
		if w.slot.Device().Class == "cpu" { // float32 costs several times as much
			n = min(n, firstRounded)
		}
		x.sample.Calls, x.made = calls[:n], outs[:n]
		return
	}
	x.sample.Calls, x.made = nil, nil
	for i, item := range x.task.keys {
		d := key.Of("compared", []stages.Digest{x.trial.program, item}, nil)
		if binary.LittleEndian.Uint64(d[:])%uint64(cmp.Or(w.executor.Compare, usualCompare)) == 0 {
			x.sample.Calls, x.made = append(x.sample.Calls, calls[i]), append(x.made, outs[i])
		}
	}
}

// compare computes on the processor the items that [Worker.enrol] has selected. The error is that the class
// is refused, in this chunk or before, or the processor's own. Nothing of a program is recorded before its
// first chunk is judged. A worker waits only for earlier ones, so none waits for ever.
func (w *Worker) compare(x *execution) (err error) {
	t := x.trial
	if t == nil {
		return nil
	}
	if x.first {
		defer func() {
			if err != nil {
				t.mu.Lock()
				t.refused = cmp.Or(t.refused, err)
				t.mu.Unlock()
			}
			close(t.judged)
		}()
	} else {
		select {
		case <-t.judged:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	t.mu.Lock()
	refused, suspected := t.refused, slices.Contains(t.recent, true)
	t.mu.Unlock()
	if refused != nil {
		return refused
	}
	if w.choose(x, suspected); x.made == nil {
		return nil
	}
	var slot *device.Slot
	select {
	case slot = <-w.executor.checker:
		defer func() { w.executor.checker <- slot }()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	began := time.Now()
	w.comparing = true
	want, facts, err := w.onProcessor(slot, x)
	w.comparing = false
	took := time.Since(began)
	w.executor.of(x.task.member.cell).meter.add(Speed{Compared: len(x.made), Comparing: took.Seconds()})
	if err != nil {
		const failed = "the processor, which its results are to be compared with, fails: %v"
		return fmt.Errorf(failed, err)
	}
	return w.judge(x, want, facts, took)
}

// recordCompared records the executions of a chunk whose class isn't refused.
func (w *Worker) recordCompared(list []*execution) {
	for _, x := range list {
		var err error
		if x.first || !x.task.member.failed() { // others wait for the first
			func() {
				defer plan.Catch(&err)
				err = w.compare(x)
			}()
		}
		w.guard(x.task.member, func() error {
			if err != nil {
				return err
			}
			return w.record(x)
		})
	}
}

// onProcessor executes the selected items on a slot of the processor.
func (w *Worker) onProcessor(slot *device.Slot, x *execution) (
	outs []callOutput, facts map[string]stages.Facts, err error,
) {
	batch := w.executor.batch
	for {
		e := x.sample
		e.Slot, e.Batch, e.Outputs, e.OutFacts = slot, batch, nil, nil
		e.OnWarn, e.OnDone = nil, nil // its warnings are known
		at := &Worker{executor: w.executor, ctx: w.ctx, slot: slot}
		err := at.call(x.task.member.cell.Stage, []stages.Part{{
			Params: x.task.member.cell.Stage.InFloat32(x.task.member.cell.Params), Env: &e}})
		if err == nil {
			outs, err = collect(x.task.member.cell, &e)
			return outs, e.OutFacts, err
		}
		smaller := smallerBatch(err, batch, nil)
		if smaller == 0 {
			return nil, nil, err
		}
		batch = smaller
		if err := slot.Trim(); err != nil {
			return nil, nil, err
		}
	}
}

// judge records how much an execution deviates from the processor's, and refuses the class if necessary.
func (w *Worker) judge(x *execution, want []callOutput, facts map[string]stages.Facts,
	took time.Duration) error {
	t := x.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took += took; t.refused != nil { // meanwhile
		return t.refused
	}
	worst, where := stages.Deviated{}, ""
	for i := range want {
		d := x.deviation(i, want[i], facts)
		t.recent = append(t.recent, d.Off())
		if t.Items++; d.Off() {
			t.Off++
		}
		if d.Compare(t.Largest) > 0 {
			t.Largest = d
		}
		if d.Compare(worst) > 0 {
			worst, where = d, fmt.Sprintf("%q", d.Quantity)
			if i < len(x.sample.Calls) {
				where += fmt.Sprintf(" of item %q", x.sample.Calls[i].ID)
			}
		}
	}
	t.recent = t.recent[max(0, len(t.recent)-max(window, len(want))):]
	off := 0
	for _, is := range t.recent {
		if is {
			off++
		}
	}
	n, otherwise := len(t.recent), math.IsInf(worst.By, 1) // rounding doesn't cause that
	whole := x.task.member.cell.Stage.Relation == stages.Whole && off > 0
	if !otherwise && !whole && (off < 2 || off <= n/8) {
		return nil
	}
	by := fmt.Sprintf("by %.2g and may by %g", worst.By, worst.Tolerance)
	if otherwise {
		by = "in shape, or in what is undefined"
	}
	instead := "--devices cpu computes it and takes all else from the store"
	if t.Precision != stages.Float32 {
		instead = "precision: float32 computes it"
	}
	const text = "%s computes it otherwise than the processor in float32: of the last %d items compared %d " +
		"deviate too much; %s deviates %s; %s"
	maker := w.executor.Resolver.Maker(x.task.member.cell)
	t.refused = fmt.Errorf(text, maker, n, off, where, by, instead)
	w.executor.Resolver.Refuse(x.task.member.cell, t.refused)
	return t.refused
}

// deviation returns the deviation of a device's results for a call from the processor's, of all quantities
// the one that exhausts its tolerance most.
func (x *execution) deviation(i int, want callOutput, facts map[string]stages.Facts) (worst stages.Deviated) {
	same := func(a, b stages.Output) bool {
		return a.ID == b.ID && a.Origin == b.Origin && a.From == b.From && a.Index == b.Index
	}
	m := x.task.member
	s, params := m.cell.Stage, m.cell.Params
	for p, out := range s.Outputs {
		made, d := x.made[i][p], stages.Deviated{Quantity: out.Name}
		if !slices.EqualFunc(made, want[p], same) ||
			!maps.Equal(x.sample.OutFacts[out.Name], facts[out.Name]) {
			d.By = math.Inf(1)
		}
		for k := 0; k < len(made) && !math.IsInf(d.By, 1); k++ {
			of := s.Deviates(params, out, m.facts[out.Name], made[k].Data, want[p][k].Data)
			if of.Compare(d) > 0 {
				d = of
			}
		}
		if d.Compare(worst) > 0 {
			worst = d
		}
	}
	return worst
}
