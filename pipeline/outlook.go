package pipeline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An Outlook predicts a run, given the results in the store. Making it writes nothing. It computes only the
// programs of cells, because a new build may compile different ones.
type Outlook struct {
	store    *store.Store
	resolver *resolve.Resolver
	speeds   *speeds
	devices  int
	compare  int // see [Engine.Compare]
	ahead    []Ahead
}

// An Ahead is the prediction for one cell.
type Ahead struct {
	Kind AheadKind
	Why  string // why it runs, or the cell on which it depends
}

// An AheadKind is a kind of prediction.
type AheadKind int

const (
	IsCached  AheadKind = iota
	Runs                // it has its inputs, but no result
	DependsOn           // on a cell that runs: equal results would make it cached
	Broken              // its data can't be read, or its device is refused for it
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

// Plan looks up the stored results of p.
func (e *Engine) Plan(ctx context.Context, p *plan.Plan) (*Outlook, error) {
	r := e.newResolver(p, &reporter{on: e.OnEvent})
	r.Compiling = device.NewCache(cmp.Or(e.DeviceBytes, 4<<30))
	defer r.Compiling.Trim()
	if e.SameDevice {
		r.MadeHere = e.MadeBy(e.Devices[0].Class)
	}
	looks := r.LookAhead(ctx, nil)
	o := &Outlook{store: e.Store, resolver: r, speeds: newSpeeds(r), devices: len(e.Devices),
		compare: e.Compare, ahead: make([]Ahead, len(p.Cells))}
	for i, n := range r.Cells {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		o.ahead[i] = o.judge(n, looks[i])
	}
	return o, nil
}

func (o *Outlook) judge(n *resolve.Cell, look resolve.Look) Ahead {
	var broken bool
	for e := range n.Edges() {
		switch o.State(e.From).Kind {
		case Runs, DependsOn:
			return Ahead{DependsOn, e.From.String()}
		case Broken:
			broken = true
		}
	}
	if broken {
		missing := func(from *plan.Cell) bool { return o.State(from).Kind == Broken }
		n.SetLive(schedule.Live(n.Cell, missing))
		if by := schedule.Blocker(n.Cell, missing); by != nil {
			return Ahead{Broken, o.State(by).rootOf(by)}
		}
	}
	for _, m := range o.resolver.Plan.RemotesOf(n.Cell) {
		if !m.Fetched() {
			return Ahead{Runs, "not fetched yet: " + m.Address}
		}
	}
	if !look.Fresh {
		look = o.resolver.Look(n)
	}
	switch lost := resolve.IsLost(look.Err); {
	case lost != nil:
		return Ahead{DependsOn, lost.Error()}
	case errors.Is(look.Err, resolve.ErrNotCompiled):
		return Ahead{Runs, look.Err.Error()}
	case look.Err != nil:
		return Ahead{Broken, look.Err.Error()}
	case look.Found:
		return Ahead{Kind: IsCached}
	}
	if err := o.resolver.Refused(n); err != nil {
		return Ahead{Broken, err.Error()}
	}
	return Ahead{Runs, look.Reason}
}

const itNeeds = "it needs "

// rootOf names the cell that can't run: c, or one that c needs.
func (a Ahead) rootOf(c *plan.Cell) string {
	if strings.HasPrefix(a.Why, itNeeds) {
		return a.Why
	}
	return itNeeds + c.String()
}

// State returns the prediction for c.
func (o *Outlook) State(c *plan.Cell) Ahead { return o.ahead[c.Index] }

// Counts counts the cells of a step by their predictions.
func (o *Outlook) Counts(s *plan.Step) (counts [4]int) {
	for _, c := range s.Cells {
		counts[o.ahead[c.Index].Kind]++
	}
	return counts
}

// Items returns the number of items of a cell, -1 while unknown.
func (o *Outlook) Items(c *plan.Cell) int {
	root := plan.Edge{From: c}.Root(o.resolver.Keys.Calls)
	for _, at := range []plan.Output{{From: c}, root} {
		n := o.resolver.Cells[at.From.Index]
		if sources := n.ID().Sources; sources != nil && n.Stage.Relation == stages.Each {
			return sources.Len()
		}
		if n.HasResults() && len(n.Stage.Outputs) > 0 && !n.Entire() {
			_, items, _ := n.Stored().Output(at.Port)
			return items
		}
	}
	return -1
}

// Complete reports whether a run would execute nothing.
func (o *Outlook) Complete() bool {
	return !slices.ContainsFunc(o.ahead, func(a Ahead) bool { return a.Kind != IsCached })
}

// Keys adds the keys of the cached cells to a set.
func (o *Outlook) Keys(set map[stages.Digest]bool) {
	for _, n := range o.resolver.Cells {
		if n.HasResults() {
			set[n.ID().Key] = true
		}
	}
}

// bytesSample is the number of cells of a step that are examined to estimate its bytes.
const bytesSample = 16

// Bytes estimates how many bytes the items of a step's cells take on the disk if they are kept, see
// [Step.Keep]: the mean size of an item in the newest records of some of the cells, times the number of
// known items. ok is false before a cell of the step has ever run, and while the number of items is
// unknown. A step without items has none.
func (o *Outlook) Bytes(s *plan.Step) (bytes int64, ok bool) {
	if !hasItems(s) || len(s.Cells) == 0 {
		return 0, true
	}
	var items int64
	for _, c := range s.Cells {
		n := o.Items(c)
		if n < 0 {
			return 0, false
		}
		items += int64(n)
	}
	if items == 0 {
		return 0, true
	}
	var seen, size int64
	for i := range min(bytesSample, len(s.Cells)) {
		n, b := o.recorded(s.Cells[i*len(s.Cells)/min(bytesSample, len(s.Cells))])
		seen, size = seen+n, size+b
	}
	if seen == 0 {
		return 0, false
	}
	return int64(float64(size) / float64(seen) * float64(items)), true
}

func hasItems(s *plan.Step) bool {
	return slices.ContainsFunc(s.Cells, func(c *plan.Cell) bool {
		return slices.ContainsFunc(c.Stage.Outputs, func(p stages.Port) bool { return p.Type.Items })
	})
}

// recorded returns the number of items of a cell when it was last executed, and their bytes over all ports.
func (o *Outlook) recorded(c *plan.Cell) (items, bytes int64) {
	a, ok := o.store.Latest(o.resolver.Plan.Name, c.String())
	if !ok || len(a.Outputs) == 0 {
		return 0, 0
	}
	hit, ok := o.store.Lookup(a.Key, "")
	if !ok {
		return 0, 0
	}
	for p := range a.Outputs {
		b, err := o.store.PayloadBytes(hit, p)
		if err != nil {
			return 0, 0
		}
		_, n, _ := hit.Output(p)
		items = max(items, int64(n))
		bytes += b
	}
	return items, bytes
}
