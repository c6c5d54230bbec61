package execute

import (
	"errors"
	"maps"
	"slices"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// A pass takes one chunk through the members of a job.
type pass struct {
	w        *Worker
	j        *Job
	chunk    []int32
	bytes    *inFlight
	apart    bool         // members that share work are executed one by one
	compared []*execution // recorded later, while the slot computes the next chunk
	computed func()       // called when the slot isn't needed any more
}

// compute takes one chunk through all members of j, several at once if they share work. It calls computed
// when it needs the slot no more: the results still have to be compared, if they are on probation, and
// stored. If the device is lost, the results computed before are stored, and w.lost is set.
func (w *Worker) compute(j *Job, chunk []int32, computed func()) {
	p := &pass{w, j, chunk, newInFlight(), j.apart.Load(), nil, computed}
	device := w.slot.Device().String()
	for i, m := range j.members {
		w.guard(m, func() error {
			if m.cell.Stage.Relation == stages.Whole {
				return w.computeWhole(m, j.onProbation)
			}
			return p.member(i)
		})
		if w.lost != nil {
			break
		}
		p.bytes.drop(m.frees)
	}
	if p.compared != nil && w.lost == nil {
		computed() // also if the last member was blocked
	}
	w.recordCompared(p.compared)
	if w.lost != nil {
		return
	}
	if j.folds {
		j.measure(p.bytes, len(chunk))
	}
	finished := int(j.computed.Add(int32(len(chunk))))
	if last := j.members[len(j.members)-1].cell; !j.restores && last.Stage.Relation != stages.Whole {
		w.executor.Events.Computed(last.Cell, finished, j.total, device)
	}
}

// member executes the calls of the chunk that the i-th member lacks, together with the later members that
// may share its work, and stores the results.
func (p *pass) member(i int) error {
	w, m, later := p.w, p.j.members[i], p.j.members[i+1:]
	stop := w.clock()
	t, err := w.todo(m, p.chunk)
	if err != nil || len(t.calls) == 0 {
		return err
	}
	tasks := []*task{t}
	if m.cell.Stage.Shared != nil && !p.apart {
		tasks = w.sharing(t, later, p.chunk)
	}
	done, err := w.execute(tasks, p.bytes)
	if err != nil && len(tasks) > 1 && w.ctx.Err() == nil && resolve.IsLost(err) == nil &&
		!errors.Is(err, stages.ErrDeviceLost) {
		// One of them fails, or all together take too much memory: each gets its own result or error.
		p.apart = true
		done, err = w.execute(tasks[:1], p.bytes)
	}
	if err != nil {
		return err
	}
	cells := make([]*resolve.Cell, len(done))
	for k, x := range done {
		cells[k] = x.task.member.cell
	}
	stop(cells...)
	if p.j.onProbation {
		for _, x := range done {
			w.enrol(x)
		}
		p.compared = append(p.compared, done...)
	}
	if len(done) > len(later) { // all members are computed
		if p.apart && !slices.ContainsFunc(p.j.members, (*member).failed) {
			p.j.apart.Store(true) // before the next chunk begins
		}
		p.computed()
	}
	for _, x := range done[1:] {
		w.guard(x.task.member, func() error { return p.store(x) })
	}
	return p.store(done[0])
}

// store stores the results of an execution; their records wait if they are to be compared first.
func (p *pass) store(x *execution) error {
	if err := p.w.keep(x, p.bytes); err != nil || p.j.onProbation {
		return err
	}
	return p.w.record(x)
}

// A task is the calls of a chunk that a member has to execute.
type task struct {
	member *member
	calls  []int
	keys   []stages.Digest // by call of calls
	equal  [][2]int        // further calls, and the calls with the same keys
}

// todo returns the calls of a chunk whose outcomes m doesn't know yet.
func (w *Worker) todo(m *member, chunk []int32) (*task, error) {
	t := &task{member: m}
	first := map[stages.Digest]int{}
	for _, c := range chunk {
		call := int(c)
		if m.known[call] != 0 {
			continue
		}
		key, ok := m.key(call)
		if !ok {
			return nil, plan.Bug("%s has no key for item %d", m.cell.Cell, call)
		}
		if w.executor.find(m, call, key) {
			continue
		}
		if equal, ok := first[key]; ok {
			t.equal = append(t.equal, [2]int{call, equal})
			continue
		}
		first[key] = call
		t.calls, t.keys = append(t.calls, call), append(t.keys, key)
	}
	return t, nil
}

// sharing returns t and the tasks of later members that may share its work: stages of the same group that
// read the same items, and lack the outcomes of the same ones.
func (w *Worker) sharing(t *task, later []*member, chunk []int32) []*task {
	tasks := []*task{t}
	for _, m := range later {
		if !m.cell.MayShare(t.member.cell.Cell) || m.failed() {
			continue
		}
		if o, err := w.todo(m, chunk); err == nil && slices.Equal(o.calls, t.calls) {
			tasks = append(tasks, o)
		}
	}
	return tasks
}

// A callOutput is the outputs of one call on each output port.
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

// execute runs the stage of a task, or the function that the stages of several tasks on the same calls
// share. bytes holds payloads of this chunk that aren't stored.
func (w *Worker) execute(tasks []*task, bytes *inFlight) ([]*execution, error) {
	first, err := w.env(tasks[0].member, tasks[0].calls, bytes)
	if err != nil {
		return nil, err
	}
	cells, envs := make([]*resolve.Cell, len(tasks)), make([]*stages.Env, len(tasks))
	for k, t := range tasks {
		cells[k] = t.member.cell
		envs[k] = &stages.Env{Stage: cells[k].Stage, Ports: first.Ports, Calls: first.Calls}
	}
	if err := w.runStage(cells, envs); err != nil {
		return nil, err
	}
	done := make([]*execution, len(tasks))
	for k, e := range envs {
		outs, err := collect(cells[k], e)
		if err != nil {
			return nil, err
		}
		done[k] = &execution{task: tasks[k], env: e, outs: outs}
	}
	return done, nil
}

// env returns the environment of m's stage for some calls.
func (w *Worker) env(m *member, calls []int, bytes *inFlight) (*stages.Env, error) {
	ports, err := w.portsOf(m.cell, m.ports)
	if err != nil {
		return nil, err
	}
	e := &stages.Env{Stage: m.cell.Stage, Ports: ports, Calls: make([]stages.Call, len(calls))}
	for i, call := range calls {
		c := &e.Calls[i]
		c.ID, c.Origin = m.calls.ID(call), m.calls.Origin(call)
		c.Members = make([][]stages.Member, len(m.cell.Inputs))
		if m.id.Sources != nil {
			s := m.id.Sources.At(call)
			c.Source = &s
			if s.File != "" {
				c.Digest = m.id.Sources.Digest(call)
			}
		}
	}
	for p := range m.inputs {
		if err := w.fill(m, p, calls, e, bytes); err != nil {
			return nil, err
		}
	}
	if m.cell.Stage.Primary() >= 0 {
		p := m.cell.Leading()[0]
		for i := range e.Calls {
			e.Calls[i].Digest = e.Calls[i].Members[p][0].Digest
		}
	}
	return e, nil
}

// portsOf returns the data of n's ports, with a function that loads it: all ports of a Whole stage, only
// the values of others, whose ports of items are given.
func (w *Worker) portsOf(n *resolve.Cell, items map[string][]stages.Data) (map[string][]stages.Data, error) {
	ports := map[string][]stages.Data{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		if data := items[port.Name]; data != nil && port.Type.Items {
			ports[port.Name] = data
			continue
		}
		for _, e := range n.ID().Live(p) {
			d, err := w.Data(e)
			if err != nil {
				return nil, err
			}
			if port.Averages {
				d.Coord, d.Replicate = apart(d.Coord, n.Replicates)
			}
			ports[port.Name] = append(ports[port.Name], d)
		}
	}
	return ports, nil
}

// apart returns the coordinates that aren't on some axes, and those that are.
func apart(coord []stages.Coord, axes []string) (others, on []stages.Coord) {
	if len(axes) == 0 {
		return coord, nil
	}
	for _, c := range coord {
		if slices.Contains(axes, c.Axis) {
			on = append(on, c)
		} else {
			others = append(others, c)
		}
	}
	return others, on
}

// fill gives calls their members on port p. On a port with Over the stage loads them one by one, when it
// needs them.
func (w *Worker) fill(m *member, p int, calls []int, e *stages.Env, bytes *inFlight) error {
	for k := range m.inputs[p] {
		in := m.inputs[p][k]
		var at []int32
		var into []*stages.Member
		for i, call := range calls {
			positions := in.Of(call)
			members := make([]stages.Member, len(positions))
			for k, pos := range positions {
				mm := &members[k]
				mm.ID, mm.Origin, mm.Coord = in.ids.ID(int(pos)), in.ids.Origin(int(pos)), in.coord
				mm.Digest, _ = in.Payload(int(pos))
				if m.cell.Stage.Inputs[p].Over {
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

// computeWhole executes a Whole stage.
func (w *Worker) computeWhole(m *member, onProbation bool) error {
	n := m.cell
	ports, err := w.portsOf(n, nil)
	if err != nil {
		return err
	}
	r := w.executor.Resolver
	e := &stages.Env{Stage: n.Stage, Ports: ports, Order: r.Keys.OrderOf(m.id)}
	e.Labels, e.Families = key.NamesIn(r.Plan.Labels, e.Order), key.NamesIn(r.Plan.Families, e.Order)
	if m.id.Sources != nil {
		e.Read = m.id.Sources.All()
	}
	facts, err := Facts(n, e.Ports)
	if err != nil {
		return err
	}
	stop := w.clock()
	if err := w.runStage([]*resolve.Cell{n}, []*stages.Env{e}); err != nil {
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
		if err := m.id.Sources.Unchanged(i, w.executor.Store.FileUnchanged); err != nil {
			return err
		}
	}
	m.facts = map[string]stages.Facts{}
	maps.Copy(m.facts, facts)
	maps.Copy(m.facts, e.OutFacts) // set by the stage while it ran
	return w.storeWhole(m, e)
}
