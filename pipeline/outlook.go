package pipeline

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// An Outlook says what a run would do, as far as the store allows to know. Making it
// writes nothing and computes nothing but the programs of cells, where a new build may
// compile others.
type Outlook struct {
	*resolver
	nodes  []*node
	ahead  []Ahead
	madeBy func() string // what would execute cells on the first device
}

// Ahead is what a run would do with one cell.
type Ahead struct {
	Kind AheadKind
	Why  string // why it runs, or the cell it depends on
}

// An AheadKind sorts cells for people who plan.
type AheadKind int

const (
	IsCached  AheadKind = iota
	Runs                // its inputs are there, its result isn't
	DependsOn           // on a cell that runs: equal results would make it cached
	Broken              // its data can't be read
)

func (a Ahead) String() string {
	switch a.Kind {
	case IsCached:
		return "cached"
	case Runs:
		return "runs: " + a.Why
	case DependsOn:
		return "depends on " + a.Why
	}
	return "can't run: " + a.Why
}

// Plan looks up what is stored of plan.
func (e *Engine) Plan(ctx context.Context, plan *plan.Plan) (*Outlook, error) {
	r := e.newResolver(plan)
	r.compiling = device.NewCache(cmp.Or(e.DeviceBytes, 4<<30))
	defer r.compiling.Trim()
	if e.OnEvent != nil {
		var mu sync.Mutex
		r.onCompile = func(n *node) {
			mu.Lock()
			defer mu.Unlock()
			e.OnEvent(Event{Kind: CellCompiling, Cell: n.String(), Step: n.Step.Name})
		}
	}
	if e.SameDevice {
		r.class = e.MadeBy(e.Devices[0].Class)
	}
	r.lookAhead(ctx, nil)
	o := &Outlook{
		resolver: r, nodes: r.nodes, ahead: make([]Ahead, len(r.nodes)),
		madeBy: func() string { return e.MadeBy(e.Devices[0].Class) },
	}
	for _, n := range r.nodes {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		o.ahead[n.Index] = o.judge(ctx, n)
	}
	return o, nil
}

func (o *Outlook) judge(ctx context.Context, n *node) Ahead {
	var broken *node
	for _, from := range o.edges(n) {
		switch a := &o.ahead[from.Index]; a.Kind {
		case Runs, DependsOn:
			return Ahead{DependsOn, from.String()}
		case Broken:
			broken = from
		}
	}
	if broken != nil {
		if by := o.blocker(n); by != nil {
			return Ahead{Broken, o.ahead[by.Index].rootOf(by)}
		}
	}
	if n.state == waiting && n.err == nil {
		n.err = o.resolve(ctx, n)
	}
	switch l := lost(n.err); {
	case l != nil:
		return Ahead{DependsOn, l.Error()}
	case errors.Is(n.err, errNotCompiled):
		n.err = nil
		return Ahead{Runs, errNotCompiled.Error()}
	case n.err != nil:
		return Ahead{Broken, n.err.Error()}
	case n.state == cached:
		return Ahead{Kind: IsCached}
	}
	return Ahead{Runs, n.reason}
}

const itNeeds = "it needs "

// rootOf says that a cell needs n, which can't run, or what n itself needs.
func (a Ahead) rootOf(n *node) string {
	if strings.HasPrefix(a.Why, itNeeds) {
		return a.Why
	}
	return itNeeds + n.String()
}

// State says what a run would do with c.
func (o *Outlook) State(c *plan.Cell) Ahead { return o.ahead[c.Index] }

// Counts adds up the cells of a step by what a run would do with them.
func (o *Outlook) Counts(s *plan.Step) (counts [4]int) {
	for _, c := range s.Cells {
		counts[o.ahead[c.Index].Kind]++
	}
	return counts
}

// Items returns how many items a cell has, -1 while that isn't known.
func (o *Outlook) Items(c *plan.Cell) int {
	n := o.nodes[c.Index]
	for {
		if n.sources != nil && n.Stage.Relation == stages.Each {
			return n.sources.len()
		}
		if n.state == cached && len(n.Stage.Outputs) > 0 {
			_, items, _ := n.stored().Output(0)
			return items
		}
		p := n.Stage.Primary()
		if p < 0 || n.Stage.Relation != stages.Each {
			return -1
		}
		n = o.nodes[n.Inputs[p].Edges[0].From.Index]
	}
}

// Complete reports whether a run would execute nothing.
func (o *Outlook) Complete() bool {
	for i := range o.ahead {
		if o.ahead[i].Kind != IsCached {
			return false
		}
	}
	return true
}
