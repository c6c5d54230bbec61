package pipeline

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Probation tells how far what a run's devices computed is off the processor's results.
//
// Libraries for other devices have computed wrong numbers without an error. So every class of devices but the
// processor is on probation with each program: a stage, its parameters and its model. The first chunk, or
// sixteen items of a large one, and then one item in [Engine.Compare], chosen by its key, is computed on the
// processor too, before anything of the chunk is recorded. An item is off if its [stages.Deviation] is beyond
// the stage's tolerance. Single items may be: a path of discrete choices, or a kink, makes much of the last
// bit. So while one of the last twenty items compared is off, all are compared. The class is refused for the
// program where at least two of the last twenty and more than an eighth are off, or where one has another
// shape or is undefined elsewhere, or that a Whole stage made. Then the cell fails, nothing that this class
// and runtime has stored of the program is served any more, and later runs fail at once, but for cells that
// are forced.
type Probation struct {
	Items    int           // that were compared
	Took     time.Duration // on the processor
	Programs []Compared    // by stage, in the order of their names
}

// Compared tells how far a stage's items are off on a device.
type Compared struct {
	Stage     string
	Items     int
	Off       int     // of them, farther off than Tolerance
	Largest   float64 // [stages.Deviation]
	Tolerance float64
}

// usualCompare is the usual [Engine.Compare].
const usualCompare = 20

// A window is how many of the items compared last are judged.
const window = 20

// A trial is a program's probation in a run.
type trial struct {
	program stages.Digest
	judged  chan struct{} // closed once the first chunk is

	mu      sync.Mutex // guards the rest
	begun   bool       // a chunk is the first
	recent  []bool     // of the items compared last, whether they are off
	refused error
	Compared
	took time.Duration
}

// trials are those of a run, by program.
type trials struct {
	mu sync.Mutex // guards of
	of map[stages.Digest]*trial
}

// at returns the trial of a program of a stage.
func (ts *trials) at(program stages.Digest, s *stages.Stage) *trial {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[program]
	if t == nil {
		if ts.of == nil {
			ts.of = map[stages.Digest]*trial{}
		}
		t = &trial{program: program, judged: make(chan struct{})}
		t.Stage, t.Tolerance = s.Name, s.Tolerance
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
		c := stage[t.Stage]
		c.Stage, c.Tolerance = t.Stage, t.Tolerance
		c.Items, c.Off, c.Largest = c.Items+t.Items, c.Off+t.Off, max(c.Largest, t.Largest)
		p.Items, p.Took = p.Items+t.Items, p.Took+t.took
		stage[t.Stage] = c
		t.mu.Unlock()
	}
	for _, name := range slices.Sorted(maps.Keys(stage)) {
		p.Programs = append(p.Programs, stage[name])
	}
	return p
}

// compares reports whether the run's devices are on probation.
func (r *run) compares() bool { return r.Devices[0].Class != "cpu" && r.Compare >= 0 }

// programOf names what n executes, whatever its items: the recipe and the values.
func (r *resolver) programOf(n *node) stages.Digest {
	h := newHasher("trial")
	h.digest(r.recipe(n, nil))
	for p := range n.Inputs {
		if n.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range r.live(n, p) {
			h.digest(r.nodes[e.From.Index].result(e.Port))
		}
	}
	return h.sum()
}

// enrol has an execution compared, if it is of a device: see [worker.compare].
func (w *worker) enrol(x *execution) {
	if !x.Stage.Device {
		return
	}
	x.trial = w.trials.at(w.programOf(x.node), x.Stage)
	x.trial.mu.Lock()
	x.first, x.trial.begun = !x.trial.begun, true
	x.trial.mu.Unlock()
	x.sample, x.made = *x.env, x.outs
}

// firstItems is how many items of a program's first chunk are compared at most: what a processor's chunk has.
const firstItems = 16

// choose leaves of an execution what is to be compared: the beginning of the first of its program, all of one
// that is suspected, else what the items' keys choose.
func (w *worker) choose(x *execution, suspected bool) {
	calls, outs := x.sample.Calls, x.made
	switch {
	case suspected || x.Stage.Relation == stages.Whole:
		return
	case x.first:
		n := min(len(calls), firstItems)
		x.sample.Calls, x.made = calls[:n], outs[:n]
		return
	}
	x.sample.Calls, x.made = nil, nil
	for i, key := range x.keys {
		h := newHasher("compared")
		h.digest(x.trial.program)
		h.digest(key)
		d := h.sum()
		if binary.LittleEndian.Uint64(d[:])%uint64(cmp.Or(w.Compare, usualCompare)) == 0 {
			x.sample.Calls, x.made = append(x.sample.Calls, calls[i]), append(x.made, outs[i])
		}
	}
}

// compare computes on the processor what is to be compared of an execution that [worker.enrol] was called
// with. The error is that the class is refused, in this chunk or before, or that the processor fails. Nothing
// of a program is recorded before its first chunk is judged. A worker waits for one that was enrolled before
// it, so none waits for ever.
func (w *worker) compare(x *execution) (err error) {
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
	case slot = <-w.checker:
		defer func() { w.checker <- slot }()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	began := time.Now()
	w.comparing = true
	want, facts, err := w.onProcessor(slot, x)
	w.comparing = false
	if err != nil {
		const failed = "the processor, which its results are to be compared with, fails: %v"
		return fmt.Errorf(failed, err)
	}
	return w.judge(x, want, facts, time.Since(began))
}

// recordCompared records executions of a chunk, those whose class isn't refused.
func (w *worker) recordCompared(list []*execution) {
	for _, x := range list {
		var err error
		if x.first || !x.failed() { // others wait for the first
			func() {
				defer plan.Catch(&err)
				err = w.compare(x)
			}()
		}
		w.guard(x.member, func() error {
			if err != nil {
				return err
			}
			return w.record(x)
		})
	}
}

// onProcessor executes what is to be compared on a slot of the processor.
func (w *worker) onProcessor(slot *device.Slot, x *execution) (
	outs []callOutput, facts map[string]stages.Facts, err error,
) {
	batch := w.batch
	for {
		e := x.sample
		e.Slot, e.Batch, e.Outputs, e.OutFacts = slot, batch, nil, nil
		e.OnWarn, e.OnDone = nil, nil // what it warned of is known
		at := &worker{run: w.run, ctx: w.ctx, slot: slot}
		err := at.call(x.Stage, []stages.Part{{Params: x.Params, Env: &e}})
		if err == nil {
			outs, err = collect(x.node, &e)
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

// judge notes how far an execution is off the processor's, and refuses the class if need be.
func (w *worker) judge(x *execution, want []callOutput, facts map[string]stages.Facts,
	took time.Duration) error {
	t := x.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took += took; t.refused != nil { // meanwhile
		return t.refused
	}
	worst, where := -1.0, ""
	for i := range want {
		d, port := x.deviation(i, want[i], facts)
		off := !(d <= t.Tolerance)
		if t.Items++; off {
			t.Off++
		}
		t.Largest = max(t.Largest, d)
		if t.recent = append(t.recent, off); d > worst {
			worst, where = d, fmt.Sprintf("port %q", port)
			if i < len(x.sample.Calls) {
				where = fmt.Sprintf("item %q on port %q", x.sample.Calls[i].ID, port)
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
	n, otherwise := len(t.recent), math.IsInf(worst, 1) // which rounding doesn't do
	whole := x.Stage.Relation == stages.Whole && off > 0
	if !otherwise && !whole && (off < 2 || off <= n/8) {
		return nil
	}
	by := fmt.Sprintf("by %.2g", worst)
	if otherwise {
		by = "in shape, or in what is undefined"
	}
	const text = "%s computes it otherwise than the processor: of the last %d items compared %d deviate by " +
		"more than %g, %s %s; --devices cpu computes it and takes all else from the store"
	t.refused = fmt.Errorf(text, w.class, n, off, t.Tolerance, where, by)
	w.refuse(x.node, t.refused)
	return t.refused
}

// deviation returns how far what a device made of a call is off what the processor did, and on which port.
func (x *execution) deviation(i int, want callOutput, facts map[string]stages.Facts) (
	worst float64, port string,
) {
	same := func(a, b stages.Output) bool {
		return a.ID == b.ID && a.Origin == b.Origin && a.From == b.From && a.Index == b.Index
	}
	for p := range x.Stage.Outputs {
		out, made, d := &x.Stage.Outputs[p], x.made[i][p], 0.0
		if !slices.EqualFunc(made, want[p], same) ||
			!maps.Equal(x.sample.OutFacts[out.Name], facts[out.Name]) {
			d = math.Inf(1)
		}
		for k := 0; k < len(made) && !math.IsInf(d, 1); k++ {
			d = max(d, stages.Deviation(out.Type, made[k].Data, want[p][k].Data))
		}
		if d >= worst {
			worst, port = d, out.Name
		}
	}
	return worst, port
}

// A refusal is what the store remembers of a program and what makes its results. Those made before it are
// never taken again, even when it is lifted.
type refusal struct {
	At  int64  // when it was last refused, in Unix nanoseconds; 0 if never
	Why string // the error; "" once a cell that was forced has passed
}

// anyRefusal is the key of a memo of stores that have any refusal, so that nobody else looks for one.
var anyRefusal = stages.Sum([]byte("refusals"))

func refusalKey(program stages.Digest, madeBy string) stages.Digest {
	h := newHasher("refusal")
	h.digest(program)
	h.text(madeBy)
	return h.sum()
}

// refusalOf returns what the store remembers of n's program as something makes its results. All values that n
// reads have finished.
func (r *resolver) refusalOf(n *node, madeBy string) (f refusal) {
	if !r.mayBeRefused(n) {
		return f
	}
	if b, ok := r.store.Memo(refusalKey(r.programOf(n), madeBy)); ok {
		_ = json.Unmarshal(b, &f) // an older value is whole, too
	}
	return f
}

// refusedSince reports whether what made a stored result of n was refused for its program since.
func (r *resolver) refusedSince(n *node, hit store.Hit) bool {
	f := r.refusalOf(n, hit.MadeBy())
	if f.At == 0 {
		return false
	}
	a, err := r.store.Action(hit)
	return err != nil || a.At <= f.At
}

// refusalHere is refusalOf for what would make results of this engine.
func (r *resolver) refusalHere(n *node) (f refusal) {
	if !r.mayBeRefused(n) {
		return f
	}
	return r.refusalOf(n, r.here())
}

// mayBeRefused reports whether it takes a longer look to know that nothing is refused for n.
func (r *resolver) mayBeRefused(n *node) bool {
	_, any := r.store.Memo(anyRefusal)
	return any && n.Stage.Device
}

// here names what would make results of this engine.
func (r *resolver) here() string {
	if r.class != "" {
		return r.class
	}
	return r.MadeBy(r.Devices[0].Class)
}

// setRefusal remembers f. What can't be written is known as long as the store is open.
func (r *resolver) setRefusal(n *node, f refusal) {
	b, err := json.Marshal(f)
	if err == nil {
		_ = r.store.SetMemo(anyRefusal, []byte{1})
		_ = r.store.SetMemo(refusalKey(r.programOf(n), r.here()), b)
	}
}

// refuse has later runs take nothing that the run's class has made of n's program.
func (r *resolver) refuse(n *node, why error) {
	r.setRefusal(n, refusal{time.Now().UnixNano(), why.Error()})
}

// refusedHere returns the error of an earlier run if the class is refused for n, and n isn't forced.
func (r *resolver) refusedHere(n *node) error {
	if r.Force != nil && r.Force(n.Cell) {
		return nil
	}
	if f := r.refusalHere(n); f.Why != "" {
		return fmt.Errorf("%s, or --force %s to try again", f.Why, n.Cell)
	}
	return nil
}

// passed lifts a refusal for n, which was forced and has passed.
func (r *run) passed(n *node) {
	if f := r.refusalHere(n); f.Why != "" && r.compares() {
		r.setRefusal(n, refusal{At: f.At})
	}
}
