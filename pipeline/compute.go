package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// compute takes one chunk through all members of j, those that share work at once. It calls computed when it
// needs the slot no more and has only to store what came out, once that is compared if it's on probation. If
// the device is lost, what was computed before is stored, and w.lost is set.
func (w *worker) compute(j *job, chunk []int32, computed func()) {
	bytes := newInFlight()
	apart, device := j.apart.Load(), w.slot.Device().String()
	var compared []*execution // and recorded later, while the slot computes the next chunk
	for i, m := range j.members {
		w.guard(m, func() error {
			if m.Stage.Relation == stages.Whole {
				return w.computeWhole(m, j.onProbation)
			}
			stop := w.clock()
			t, err := w.todo(m, chunk)
			if err != nil || len(t.calls) == 0 {
				return err
			}
			tasks := []*task{t}
			if m.Stage.Shared != nil && !apart {
				tasks = w.sharing(t, j.members[i+1:], chunk)
			}
			done, err := w.execute(tasks, bytes)
			if err != nil && len(tasks) > 1 && w.ctx.Err() == nil && lost(err) == nil &&
				!errors.Is(err, stages.ErrDeviceLost) {
				// One of them fails, or all together take too much memory: each has its own result or error.
				apart, tasks = true, tasks[:1]
				done, err = w.execute(tasks, bytes)
			}
			if err != nil {
				return err
			}
			nodes := make([]*node, len(tasks))
			for k, t := range tasks {
				nodes[k] = t.node
			}
			stop(nodes...)
			if j.onProbation {
				for _, x := range done {
					w.enrol(x)
				}
				compared = append(compared, done...)
			}
			if i+len(tasks) == len(j.members) {
				if apart && !slices.ContainsFunc(j.members, (*member).failed) {
					j.apart.Store(true) // before the next chunk begins
				}
				computed()
			}
			commit := func(x *execution) error {
				if err := w.keep(x, bytes); err != nil || j.onProbation {
					return err
				}
				return w.record(x)
			}
			for _, x := range done[1:] {
				w.guard(x.member, func() error { return commit(x) })
			}
			return commit(done[0])
		})
		if w.lost != nil {
			break
		}
		bytes.drop(m.frees)
	}
	if compared != nil && w.lost == nil {
		computed() // also where the last member was blocked
	}
	w.recordCompared(compared)
	if w.lost != nil {
		return
	}
	if j.folds {
		j.measure(bytes, len(chunk))
	}
	finished := int(j.computed.Add(int32(len(chunk))))
	if last := j.members[len(j.members)-1]; !j.restores && last.Stage.Relation != stages.Whole {
		e := eventOf(Items, last.Cell)
		e.Done, e.Total, e.Device = finished, j.total, device
		w.emit(e)
	}
}

// A task is the calls of a chunk that a member has to execute.
type task struct {
	*member
	calls []int
	keys  []stages.Digest // by call of calls
	twins [][2]int        // further calls, and those of calls with the same keys
}

// todo returns the calls of a chunk that m doesn't know yet.
func (w *worker) todo(m *member, chunk []int32) (*task, error) {
	t := &task{member: m}
	first := map[stages.Digest]int{}
	for _, c := range chunk {
		call := int(c)
		if m.known[call] != 0 {
			continue
		}
		key, ok := m.itemKey(call)
		if !ok {
			return nil, plan.Bug("%s has no key for item %d", m.Cell, call)
		}
		if w.find(m, call, key) {
			continue
		}
		if twin, ok := first[key]; ok {
			t.twins = append(t.twins, [2]int{call, twin})
			continue
		}
		first[key] = call
		t.calls, t.keys = append(t.calls, call), append(t.keys, key)
	}
	return t, nil
}

// sharing returns t and the tasks of later members that may share its work: of stages of the same group that
// read the same items, and lack the same ones.
func (w *worker) sharing(t *task, later []*member, chunk []int32) []*task {
	tasks := []*task{t}
	for _, m := range later {
		if !schedule.MayShare(m.Cell, t.Cell) || m.failed() {
			continue
		}
		if o, err := w.todo(m, chunk); err == nil && slices.Equal(o.calls, t.calls) {
			tasks = append(tasks, o)
		}
	}
	return tasks
}

// A callOutput is what one call put on each output port.
type callOutput [][]stages.Output

// payloadsOf returns the payloads of some calls, call by call and port by port.
func payloadsOf(outs []callOutput) (payloads [][]byte) {
	for _, ports := range outs {
		for _, port := range ports {
			for _, o := range port {
				payloads = append(payloads, o.Data)
			}
		}
	}
	return payloads
}

// execute runs the stage of a task, or the function that the stages of several tasks on the same calls share.
// bytes holds payloads of this chunk that no store keeps.
func (w *worker) execute(tasks []*task, bytes *inFlight) ([]*execution, error) {
	first, err := w.env(tasks[0].member, tasks[0].calls, bytes)
	if err != nil {
		return nil, err
	}
	nodes, envs := make([]*node, len(tasks)), make([]*stages.Env, len(tasks))
	for k, t := range tasks {
		nodes[k], envs[k] = t.node, &stages.Env{Stage: t.Stage, Ports: first.Ports, Calls: first.Calls}
	}
	if err := w.runStage(nodes, envs); err != nil {
		return nil, err
	}
	done := make([]*execution, len(tasks))
	for k, e := range envs {
		outs, err := collect(nodes[k], e)
		if err != nil {
			return nil, err
		}
		done[k] = &execution{task: tasks[k], env: e, outs: outs}
	}
	return done, nil
}

// env returns what m's stage sees of some calls.
func (w *worker) env(m *member, calls []int, bytes *inFlight) (*stages.Env, error) {
	ports, err := w.portsOf(m.node, m.ports)
	if err != nil {
		return nil, err
	}
	e := &stages.Env{Stage: m.Stage, Ports: ports, Calls: make([]stages.Call, len(calls))}
	for i, call := range calls {
		c := &e.Calls[i]
		c.ID, c.Origin = m.calls.ids[call], m.calls.origin(call)
		c.Members = make([][]stages.Member, len(m.Inputs))
		if m.sources != nil {
			s := m.sources.at(call)
			c.Source = &s
			if s.File != "" {
				c.Digest = m.sources.digest(call)
			}
		}
	}
	for p := range m.inputs {
		if err := w.fill(m, p, calls, e, bytes); err != nil {
			return nil, err
		}
	}
	if m.Stage.Primary() >= 0 {
		p := m.leading()[0]
		for i := range e.Calls {
			e.Calls[i].Digest = e.Calls[i].Members[p][0].Digest
		}
	}
	return e, nil
}

// portsOf returns what is on n's ports, with a way to load it: all of a Whole stage, values of others, whose
// ports of items are given.
func (w *worker) portsOf(n *node, items map[string][]stages.Data) (map[string][]stages.Data, error) {
	ports := map[string][]stages.Data{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		if data := items[port.Name]; data != nil && port.Type.Items {
			ports[port.Name] = data
			continue
		}
		for _, e := range w.live(n, p) {
			d, err := w.data(e)
			if err != nil {
				return nil, err
			}
			ports[port.Name] = append(ports[port.Name], d)
		}
	}
	return ports, nil
}

// fill gives calls their members on port p. Those of a port with Over are loaded one by one, when the stage
// wants them.
func (w *worker) fill(m *member, p int, calls []int, e *stages.Env, bytes *inFlight) error {
	for k := range m.inputs[p] {
		in := &m.inputs[p][k]
		var at []int32
		var into []*stages.Member
		for i, call := range calls {
			positions := in.of(call)
			members := make([]stages.Member, len(positions))
			for k, pos := range positions {
				mm := &members[k]
				mm.ID, mm.Origin, mm.Coord = in.ids.ids[pos], in.ids.origin(int(pos)), in.coord
				mm.Digest, _ = in.digest(int(pos))
				if m.Stage.Inputs[p].Over {
					mm.Load = func() ([]byte, error) {
						data, err := w.payloads(in, []int32{pos}, bytes)
						if err != nil {
							return nil, err
						}
						return data[0], nil
					}
				} else {
					at, into = append(at, pos), append(into, mm)
				}
			}
			if into := &e.Calls[i].Members[p]; *into == nil {
				*into = members
			} else {
				*into = append(*into, members...)
			}
		}
		data, err := w.payloads(in, at, bytes)
		if err != nil {
			return err
		}
		for i := range data {
			into[i].Data = data[i]
		}
	}
	return nil
}

// runStage calls a stage's Run or, for several tasks, the function that their stages share. When memory runs
// out it calls Run with a smaller batch, and the cell's later chunks begin with the batch that fitted.
func (w *worker) runStage(nodes []*node, envs []*stages.Env) error {
	n := nodes[0]
	batch := w.batch
	for _, n := range nodes {
		batch = min(batch, cmp.Or(int(n.batch.Load()), batch))
	}
	var tried *stages.BatchError
	trimmed := false
	for {
		warnings := make([][]stages.Warning, len(nodes))
		parts := make([]stages.Part, len(nodes))
		for k, n := range nodes {
			e := envs[k]
			if n.Stage.Seeded {
				e.Seed = w.plan.Seed
			}
			e.Slot, e.Batch, e.Outputs, e.OutFacts = w.slot, batch, nil, nil
			e.OnWarn = func(x stages.Warning) { warnings[k] = append(warnings[k], x) }
			parts[k] = stages.Part{Params: n.Params, Env: e}
		}
		err := w.call(n.Stage, parts)
		switch {
		case err != nil && w.ctx.Err() != nil:
			return context.Cause(w.ctx)
		case err != nil && w.slot.Lost(): // by another slot, however the library puts it here
			return fmt.Errorf("%w: %w", stages.ErrDeviceLost, err)
		case err != nil && len(nodes) > 1:
			return err // each is called alone
		}
		smaller := smallerBatch(err, batch, tried)
		if smaller == 0 && n.Stage.Device && !trimmed && errors.Is(err, stages.ErrOutOfMemory) {
			// What other cells left on the device may be all that is in the way.
			if trimmed = true; w.slot.Trim() == nil {
				continue
			}
		}
		if smaller == 0 {
			for k, n := range nodes {
				n.addWarnings(warnings[k])
			}
			return err
		}
		errors.As(err, &tried)
		batch = smaller
		if n.lower(batch) { // and no other chunk has said so
			w.warn(n.Cell, "%v; it is tried again with batches of %d", err, batch)
		}
		if err := w.slot.Trim(); err != nil {
			return err
		}
	}
}

// lower has the cell's later chunks begin with a batch, and reports whether they began with a larger one.
func (n *node) lower(batch int) bool {
	for {
		before := n.batch.Load()
		if before != 0 && before <= int32(batch) {
			return false
		}
		if n.batch.CompareAndSwap(before, int32(batch)) {
			return true
		}
	}
}

// smallerBatch returns the batch to try after an error of a batch, given that of the one before; 0 if a
// smaller one doesn't help.
func smallerBatch(err error, batch int, before *stages.BatchError) int {
	if !errors.Is(err, stages.ErrOutOfMemory) {
		return 0
	}
	var e *stages.BatchError
	if !errors.As(err, &e) {
		return batch / 2
	}
	if before != nil && e.Rows >= before.Rows {
		return 0 // the rows aren't fewer where the batch is smaller
	}
	return min(e.Smaller, batch/2)
}

func (w *worker) call(s *stages.Stage, parts []stages.Part) (err error) {
	defer w.slot.Begin()()
	defer plan.Catch(&err)
	if len(parts) > 1 {
		return s.Shared.Run(w.ctx, parts)
	}
	return s.Run(w.ctx, parts[0].Params, parts[0].Env)
}

// collect sorts outputs by call and port, and refuses a stage that put more or less than its relation
// promises. A Whole stage has one call.
func collect(n *node, e *stages.Env) ([]callOutput, error) {
	outs, name := make([]callOutput, max(len(e.Calls), 1)), n.Stage.Name
	for i := range outs {
		outs[i] = make(callOutput, len(n.Stage.Outputs))
	}
	for _, o := range e.Outputs {
		p := slices.IndexFunc(n.Stage.Outputs, func(p stages.Port) bool { return p.Name == o.Port })
		if p < 0 || o.Call < 0 || o.Call >= len(outs) {
			return nil, plan.Bug("stage %s puts something on port %q of item %d", name, o.Port, o.Call)
		}
		outs[o.Call][p] = append(outs[o.Call][p], o)
	}
	for i := range outs {
		of := ""
		if i < len(e.Calls) {
			of = fmt.Sprintf(" of the item %q", e.Calls[i].ID)
		}
		for p, list := range outs[i] {
			port := &n.Stage.Outputs[p]
			many := n.Stage.Relation == stages.Expand || n.Stage.Relation == stages.Whole && port.Type.Items
			if !many && len(list) != 1 {
				return nil, plan.Bug("stage %s puts %d payloads on port %q%s", name, len(list), port.Name, of)
			}
			seen := make(map[string]bool, len(list))
			for _, o := range list {
				if seen[o.ID] {
					const format = "stage %s makes two items %q%s on port %q"
					return nil, plan.Bug(format, name, o.ID, of, port.Name)
				}
				seen[o.ID] = true
			}
		}
	}
	return outs, nil
}

// computeWhole executes a Whole stage.
func (w *worker) computeWhole(m *member, onProbation bool) error {
	n := m.node
	ports, err := w.portsOf(n, nil)
	if err != nil {
		return err
	}
	e := &stages.Env{Stage: n.Stage, Ports: ports, Order: w.orderOf(n)}
	e.Labels, e.Families = namesIn(w.plan.Labels, e.Order), namesIn(w.plan.Families, e.Order)
	if n.sources != nil {
		e.Read = n.sources.all()
	}
	facts, err := factsOf(n, e.Ports)
	if err != nil {
		return err
	}
	stop := w.clock()
	if err := w.runStage([]*node{n}, []*stages.Env{e}); err != nil {
		return err
	}
	stop(n)
	if onProbation {
		outs, err := collect(n, e)
		if err != nil {
			return err
		}
		x := &execution{task: &task{member: m}, env: e, outs: outs}
		w.enrol(x)
		if err := w.compare(x); err != nil {
			return err
		}
	}
	for i := range e.Read {
		if err := n.sources.unchanged(w.store, i); err != nil {
			return err
		}
	}
	m.facts = map[string]stages.Facts{}
	maps.Copy(m.facts, facts)
	maps.Copy(m.facts, e.OutFacts) // which it found while it ran
	return w.commitWhole(m, e)
}
