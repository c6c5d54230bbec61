package pipeline

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// speeds are the costs of cells in earlier runs, from the store. No key and no result depends on them.
type speeds struct {
	resolver *resolve.Resolver
	likely   sync.Map // definitions of cells that haven't finished, by cell

	mu      sync.Mutex                      // guards compile
	compile map[stages.Digest]execute.Speed // what cells share in this run, by what shares it
	sharing func() map[stages.Digest]int    // cells by what shares their programs
}

func newSpeeds(r *resolve.Resolver) *speeds {
	s := &speeds{resolver: r, compile: map[stages.Digest]execute.Speed{}}
	s.sharing = sync.OnceValue(s.sharers)
	return s
}

// A measured is a speed of an earlier run.
type measured struct {
	execute.Speed
	programs  float64 // the cell's part of those that it shares
	among     int     // the cells that share them
	elsewhere bool    // by another kind of machine
}

// sharers counts the plan's cells by the stage, the parameters and the model, as cells for which these are
// the same share their programs: those that will run or, where all are stored, all.
func (r *speeds) sharers() map[stages.Digest]int {
	lacking, all := map[stages.Digest]int{}, map[stages.Digest]int{}
	for _, n := range r.resolver.Cells {
		here, _ := r.keys(n)
		if len(here) == 0 {
			continue
		}
		all[here[0]]++
		if !n.HasResults() {
			lacking[here[0]]++
		}
	}
	maps.Copy(all, lacking)
	return all
}

// compiled returns what compiling took in this run: the seconds of all slots, and the programs. One that
// several stages share counts where it was compiled.
func (r *speeds) compiled() (seconds float64, programs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.compile {
		seconds, programs = seconds+s.Loading, programs+s.Programs
	}
	return seconds, programs
}

// remember stores the speed of a cell that was executed.
func (r *speeds) remember(n *resolve.Cell, s execute.Speed) {
	if s.Calls == 0 {
		return
	}
	here, anywhere := r.keys(n)
	if len(here) == 0 {
		return
	}
	r.mu.Lock()
	all := r.compile[here[0]]
	all.Add(execute.Speed{Loading: s.Loading, Programs: s.Programs, Compared: s.Compared,
		Comparing: s.Comparing})
	r.compile[here[0]] = all
	r.mu.Unlock()
	s.Loading, s.Programs, s.Compared, s.Comparing = all.Loading, all.Programs, all.Compared, all.Comparing
	b, err := json.Marshal(s)
	if err != nil {
		return
	}
	for i, key := range slices.Concat(here, anywhere) {
		_, known := r.resolver.Store.Memo(key)
		if known && (i >= len(here) || i == len(here)-1 && len(here) == 2) {
			continue // for the many cells of a stage one is enough
		}
		_ = r.resolver.Store.SetMemo(key, b) // if it fails, the next estimate lacks this cell
	}
}

// of returns the speed of a cell in an earlier run: of the same stage, parameters and model, or else of the
// same stage and model, or else of the same stage and parameters with the model's time for that many
// passes. Without a model it is the speed of the same stage and parameters in this experiment, or else of
// the same stage in any. If this kind of machine has measured none of these, it is the speed of another
// kind whose results this one uses from the store. ok is false if none is known. Of what cells share, each
// has an equal part.
func (r *speeds) of(n *resolve.Cell) (s measured, ok bool) {
	keys, anywhere := r.keys(n)
	if s, ok = r.recalled(keys, anywhere); ok {
		s.among = max(r.sharing()[keys[0]], 1)
		s.Loading, s.programs = s.Loading/float64(s.among), float64(s.Programs)/float64(s.among)
	}
	return s, ok
}

func (r *speeds) recalled(keys, anywhere []stages.Digest) (s measured, ok bool) {
	recall := func(key stages.Digest) (s measured, ok bool) {
		b, known := r.resolver.Store.Memo(key)
		ok = known && json.Unmarshal(b, &s.Speed) == nil && s.Calls > 0
		return s, ok
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
		if ok && known && same.Passes() > 0 && model.Passes() > 0 {
			same.Seconds = model.Seconds / float64(model.Passes()) * float64(same.Passes())
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

// keys returns the keys of n's speed on this kind of machine, the most specific first: stage, parameters
// and model; stage and model; stage and parameters; model. A model is identified by its definition, which
// is known before it is made. Without a model, time depends on the items' size: then stage and parameters
// count in this experiment, and the stage alone if another experiment has already executed everything. The
// keys of anywhere are the first two without the kind of machine: for results that another kind has made.
func (r *speeds) keys(n *resolve.Cell) (here, anywhere []stages.Digest) {
	model := key.NewHasher("model")
	models := 0
	for p := range n.Inputs {
		if n.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range n.Inputs[p].Edges {
			d, err := r.definition(e.From)
			if err != nil {
				return nil, nil
			}
			model.Digest(d)
			models++
		}
	}
	net := model.Sum()
	made := r.resolver.MadeBy(r.resolver.Class)
	speed := func(made string, params, net []byte) stages.Digest {
		h := key.NewHasher("speed")
		h.Text(made)
		h.Text(string(params))
		h.Text(string(net))
		return h.Sum()
	}
	stage := []byte(n.Stage.Name)
	all := r.resolver.Keys.Params.Encode(append(stage, 0), n.Stage, n.Params)
	direct := func(made string) []stages.Digest {
		if models == 0 || !n.Stage.Device {
			return []stages.Digest{speed(made, all, []byte(r.resolver.Plan.Name)), speed(made, stage, nil)}
		}
		return []stages.Digest{speed(made, all, net[:]), speed(made, stage, net[:])}
	}
	here, anywhere = direct(made), direct("")
	if models > 0 && n.Stage.Device {
		here = append(here, speed(made, all, nil), speed(made, nil, net[:]))
	}
	return here, anywhere
}

// definition returns the definition of a cell or, while the cell hasn't finished, its definition if nothing
// that the cell reads were missing.
func (r *speeds) definition(c *plan.Cell) (d stages.Digest, err error) {
	if r.resolver.Cells[c.Index].HasResults() {
		return r.resolver.Definition(c)
	}
	if d, ok := r.likely.Load(c); ok {
		return d.(stages.Digest), nil
	}
	keys := *r.resolver.Keys
	keys.Results = likely{r.resolver, r}
	if d, err = keys.Definition(r.resolver.Identity(c)); err == nil {
		r.likely.Store(c, d)
	}
	return d, err
}

// A likely gives results with the definitions that cells probably have.
type likely struct {
	*resolve.Resolver
	speeds *speeds
}

// Definition implements [key.Results].
func (l likely) Definition(c *plan.Cell) (stages.Digest, error) { return l.speeds.definition(c) }
