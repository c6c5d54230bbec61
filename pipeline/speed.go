package pipeline

import (
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// A Speed is what calls of a cell took: those of the last run that executed any. The store remembers it for
// estimates; no key and no result depends on it.
type Speed struct {
	Calls    int     `json:"calls"`    // items; a Whole stage's are all items that it reads, or 1
	Made     int     `json:"made"`     // items on the first output port
	Forward  int     `json:"forward"`  // passes
	Backward int     `json:"backward"` // passes
	Seconds  float64 `json:"seconds"`  // of one slot, loading apart
	Loading  float64 `json:"loading"`  // seconds of all slots that wait for programs

	elsewhere bool // measured by another kind of machine
}

func (s *Speed) add(o Speed) {
	s.Calls += o.Calls
	s.Made += o.Made
	s.Forward += o.Forward
	s.Backward += o.Backward
	s.Seconds += o.Seconds
	s.Loading += o.Loading
}

func (s *Speed) passes() int { return s.Forward + s.Backward }

// A meter adds up a cell's speed during a run.
type meter struct {
	mu    sync.Mutex
	speed Speed
	kept  Speed // what was remembered
}

// spent returns all that was spent on the cell in this run.
func (m *meter) spent() Speed {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.kept
	s.add(m.speed)
	return s
}

func (m *meter) add(s Speed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.speed.add(s)
}

// clock starts to measure what w does on its slot. The result stops it and divides what was spent among the
// cells that shared the work.
func (w *worker) clock() (stop func(nodes ...*node)) {
	w.slot.Take()
	began := time.Now()
	return func(nodes ...*node) {
		took, spent, n := time.Since(began), w.slot.Take(), len(nodes)
		for k, node := range nodes {
			share := func(all int) int { return (all + k) / n } // they add up to all
			node.meter.add(Speed{
				Forward: share(spent.Forward), Backward: share(spent.Backward),
				Seconds: max(took-spent.Loading, 0).Seconds() / float64(n),
				Loading: spent.Loading.Seconds() / float64(n),
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

// remember stores the speed of a cell that was executed, for [resolver.speedOf].
func (r *resolver) remember(n *node) {
	n.meter.mu.Lock()
	s := n.meter.speed
	n.meter.kept.add(s)
	n.meter.speed = Speed{}
	n.meter.mu.Unlock()
	if s.Calls == 0 {
		return
	}
	b, err := json.Marshal(s)
	if err != nil {
		return
	}
	here, anywhere := r.speedKeys(n)
	for i, key := range slices.Concat(here, anywhere) {
		_, known := r.store.Memo(key)
		if known && (i >= len(here) || i == len(here)-1 && len(here) == 2) {
			continue // of a stage's many cells one is enough
		}
		_ = r.store.SetMemo(key, b) // without it, the next estimate lacks this cell
	}
}

// speedOf returns the speed of a cell as an earlier run measured it: of the same stage, parameters and model,
// or else of the same stage and model, or else of the same stage and parameters with the seconds that the
// model takes for as many passes. Without a model it is that of the same stage and parameters in this
// experiment, or else of the same stage in any. Where this kind of machine has measured none of these, it is
// what another one did whose results this one takes from the store. ok is false where none is known.
func (r *resolver) speedOf(n *node) (s Speed, ok bool) {
	keys, anywhere := r.speedKeys(n)
	recall := func(key stages.Digest) (s Speed, ok bool) {
		b, ok := r.store.Memo(key)
		return s, ok && json.Unmarshal(b, &s) == nil && s.Calls > 0
	}
	direct := keys
	if len(keys) == 4 {
		direct = keys[:2]
	}
	for _, key := range direct {
		if s, ok = recall(key); ok {
			return s, true
		}
	}
	if len(keys) == 4 {
		same, ok := recall(keys[2])
		model, known := recall(keys[3])
		if ok && known && same.passes() > 0 && model.passes() > 0 {
			same.Seconds = model.Seconds / float64(model.passes()) * float64(same.passes())
			return same, true
		}
	}
	for _, key := range anywhere {
		if s, ok = recall(key); ok {
			s.elsewhere = true
			return s, true
		}
	}
	return s, false
}

// speedKeys returns the keys of n's speed on this kind of machine, from what tells most to what tells least:
// stage, parameters and model; stage and model; stage and parameters; model. A model is known by its
// definition, which is known before it is made. Without a model, time depends on the items' size: then stage
// and parameters count in this experiment, and the stage alone where another experiment has left nothing to
// measure. The keys of anywhere are the first two without the kind of machine: where one has left nothing to
// measure to another.
func (r *resolver) speedKeys(n *node) (here, anywhere []stages.Digest) {
	model := newHasher("model")
	models := 0
	for p := range n.Inputs {
		if n.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range n.Inputs[p].Edges {
			d, err := r.definition(r.nodes[e.From.Index])
			if err != nil {
				return nil, nil
			}
			model.digest(d)
			models++
		}
	}
	net := model.sum()
	made := r.MadeBy(r.Devices[0].Class)
	key := func(made string, params, net []byte) stages.Digest {
		h := newHasher("speed")
		h.text(made)
		h.text(string(params))
		h.text(string(net))
		return h.sum()
	}
	stage := []byte(n.Stage.Name)
	all := r.params.encode(append(stage, 0), n.Stage, n.Params)
	direct := func(made string) []stages.Digest {
		if models == 0 || !n.Stage.Device {
			return []stages.Digest{key(made, all, []byte(r.plan.Name)), key(made, stage, nil)}
		}
		return []stages.Digest{key(made, all, net[:]), key(made, stage, net[:])}
	}
	here, anywhere = direct(made), direct("")
	if models > 0 && n.Stage.Device {
		here = append(here, key(made, all, nil), key(made, nil, net[:]))
	}
	return here, anywhere
}

// An Estimate is what a run would take, as far as earlier runs measured it.
type Estimate struct {
	Seconds           float64
	Forward, Backward int // passes
	Unknown           int // cells of which nothing is known
	Elsewhere         int // cells that another kind of machine measured
}

// Add adds another estimate.
func (e *Estimate) Add(o Estimate) {
	e.Seconds += o.Seconds
	e.Forward += o.Forward
	e.Backward += o.Backward
	e.Unknown += o.Unknown
	e.Elsewhere += o.Elsewhere
}

// Estimate estimates what the cells of a step take that a run would execute, on this engine's devices. Items
// that an earlier run left in a cell which isn't finished count too.
func (o *Outlook) Estimate(s *plan.Step) (e Estimate) {
	cells, longest := 0, 0.0
	for _, c := range s.Cells {
		if kind := o.ahead[c.Index].Kind; kind == IsCached || kind == Broken {
			continue
		}
		cells++
		one := o.cost(o.r.nodes[c.Index], 0)
		e.Add(one)
		longest = max(longest, one.Seconds)
	}
	if cells == 0 {
		return e
	}
	workers := runtime.GOMAXPROCS(0)
	if s.Cells[0].Stage.Device {
		workers = len(o.r.Devices)
	}
	e.Seconds /= float64(workers)
	if s.Cells[0].Stage.Relation == stages.Whole { // whose work isn't divided
		e.Seconds = max(e.Seconds, longest)
	}
	return e
}

// cost estimates what a cell takes on one slot, of whose calls that many are done.
func (o *Outlook) cost(n *node, done int) Estimate {
	speed, ok := o.r.speedOf(n)
	calls := o.calls(n)
	if !ok || calls < 0 {
		return Estimate{Unknown: 1}
	}
	scale := float64(max(calls-done, 0)) / float64(speed.Calls)
	e := Estimate{
		Seconds:  speed.Loading + speed.Seconds*scale,
		Forward:  int(math.Round(float64(speed.Forward) * scale)),
		Backward: int(math.Round(float64(speed.Backward) * scale)),
	}
	if speed.elsewhere {
		e.Elsewhere = 1
	}
	return e
}

// calls returns how many calls a cell takes, -1 if nobody knows: see [Speed.Calls].
func (o *Outlook) calls(n *node) int {
	if n.Stage.Relation != stages.Whole {
		if items := o.Items(n.Cell); items >= 0 && n.Stage.Relation == stages.Each {
			return items
		}
		if n.sources != nil && n.Stage.Primary() < 0 {
			return n.sources.len()
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

// before returns the cell whose items n is called for, nil where it makes the list of them.
func before(n *node) *plan.Cell {
	for _, p := range n.leading() {
		return n.Inputs[p].Edges[0].From
	}
	return nil
}

// Likely returns how many items a cell has or, while that isn't known, how many it would make of its inputs
// if it made as many of each as it last did. It is -1 where nobody knows.
func (o *Outlook) Likely(c *plan.Cell) int {
	if items := o.Items(c); items >= 0 {
		return items
	}
	n := o.r.nodes[c.Index]
	calls := o.calls(n)
	if n.Stage.Relation == stages.Each || calls < 0 {
		return calls
	}
	speed, ok := o.r.speedOf(n)
	if !ok {
		return -1
	}
	return int(math.Round(float64(speed.Made) * float64(calls) / float64(speed.Calls)))
}
