// Package resolve turns cells into keys, and keys into what is stored under them.
//
//   - resolve: a [Resolver] gives a cell its identity and looks it up, in a plan ahead of everything else.
//   - cell: a cell's identity, and its outcome, which one mutex guards.
//   - sources, program: what of an identity takes work.
//   - results, data: what a cell that has finished well has; a [Lost] error asks for its execution.
//   - refusal: devices whose results aren't taken any more.
//   - share: the items of one of many machines.
//   - warnings: what a cell's stage warned of.
package resolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc/iter"
)

// A Store is what a resolver needs of the store.
type Store interface {
	Lookup(key stages.Digest, prefer string) (store.Hit, bool)
	Action(store.Hit) (store.Action, error)
	Listing(h store.Hit, port int) (*store.Listing, error)
	NewListing(stages.Facts, store.Parts) *store.Listing
	Load(store.Ref) ([]byte, error)
	Check(store.ObjectRef) *store.Miss
	Memo(key stages.Digest) ([]byte, bool)
	SetMemo(key stages.Digest, value []byte) error
	NewTexts(width int) *store.Texts
	KnowsFile(path string) bool
	FileDigest(path string) (stages.Digest, error)
	FileUnchanged(path string, digest stages.Digest) error
}

// Options say which results a resolver takes.
type Options struct {
	Store Store
	// Class names what makes results of stages with a device, which are preferred; "" while nobody asked.
	Class string
	// MadeBy names what makes the results of a device class, Devices the class in use.
	MadeBy  func(class string) string
	Devices string
	// Compiler names what compiles programs, so that another doesn't trust their digests.
	Compiler func() string
	// SameDevice takes only results that were made by what MadeBy names.
	SameDevice bool
	// Force reports whether to execute a cell whatever is stored; it may be nil.
	Force func(*plan.Cell) bool
	// Compiling is where programs are compiled.
	Compiling *device.Cache
	Events    Events
}

// Events are called from any goroutine as the work goes on.
type Events interface {
	Compiling(*plan.Cell)           // its program
	Warn(c *plan.Cell, text string) // of what isn't an error
}

// A Resolver turns the cells of a plan into keys and keys into what is stored under them.
type Resolver struct {
	Options
	Plan  *plan.Plan
	Cells []*Cell // by index in the plan
	Keys  *key.Maker

	texts    *store.Texts // of sources
	programs programs
	share    *Share    // of the items, nil for all
	whole    *Resolver // of a share's: the resolver of all items
	noted    bool      // files of which the store has no note aren't read
}

// New returns a resolver of p's cells.
func New(p *plan.Plan, o Options) *Resolver {
	r := &Resolver{Options: o, Plan: p, Cells: make([]*Cell, len(p.Cells)),
		texts: o.Store.NewTexts(key.SourceTexts)}
	r.Keys = &key.Maker{Plan: p, Calls: p.Calls(), Params: &key.Params{}, Results: r}
	all := make([]Cell, len(p.Cells))
	for i, c := range p.Cells {
		n := &all[i]
		n.Cell = c
		n.identity.Store(&key.Identity{Cell: c})
		r.Cells[i] = n
		for e := range c.Edges() {
			from := r.Of(e)
			from.ports = max(from.ports, e.Port+1)
			n.depth = max(n.depth, from.depth+1)
		}
	}
	return r
}

// Of returns the cell that an edge comes from.
func (r *Resolver) Of(e plan.Edge) *Cell { return r.Cells[e.From.Index] }

// A Look is what a resolver found of a cell.
type Look struct {
	Looked bool       // all its inputs had results
	Found  bool       // so has the cell
	Reason string     // why it hasn't
	Before *store.Hit // what is stored, if that isn't good enough
	Err    error      // why it can't be known; [ErrNotCompiled] if it could be
}

// LookAhead looks up, on all cores, every cell whose inputs are all stored: in a run that changes little,
// that's nearly all of them. After a new build, what that compiles differently is found here. It ends early
// when stop is closed. The list is by index in the plan.
func (r *Resolver) LookAhead(ctx context.Context, stop <-chan struct{}) []Look {
	looks := make([]Look, len(r.Cells))
	cells := slices.Clone(r.Cells)
	slices.SortStableFunc(cells, func(a, b *Cell) int { return cmp.Compare(a.depth, b.depth) })
	for len(cells) > 0 {
		size := slices.IndexFunc(cells, func(n *Cell) bool { return n.depth > cells[0].depth })
		if size < 0 {
			size = len(cells)
		}
		iter.ForEach(cells[:size], func(n **Cell) {
			if ctx.Err() == nil && !closed(stop) && !(*n).HasResults() {
				looks[(*n).Index] = r.lookAhead(ctx, *n)
			}
		})
		cells = cells[size:]
	}
	return looks
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lookAhead looks n up if its inputs are stored. An error that only says that it is too early to know isn't
// kept.
func (r *Resolver) lookAhead(ctx context.Context, n *Cell) Look {
	for e := range n.Edges() {
		if !r.Of(e).HasResults() {
			return Look{}
		}
	}
	look := r.Look(n)
	if errors.Is(look.Err, ErrNotCompiled) {
		if look.Err = r.Compile(ctx, n); look.Err == nil {
			look = r.Look(n)
		}
	}
	if ctx.Err() != nil || IsLost(look.Err) != nil {
		return Look{}
	}
	return look
}

// Look makes n's key, all of whose inputs have finished, and looks it up.
func (r *Resolver) Look(n *Cell) Look {
	if err := r.MakeKey(n); err != nil {
		return Look{Looked: true, Err: err}
	}
	return r.LookUp(n)
}

// MakeKey gives n, all of whose inputs have finished, its key.
func (r *Resolver) MakeKey(n *Cell) error {
	if err := r.Prepare(n); err != nil {
		return err
	}
	id := *n.ID()
	var err error
	if id.Key, err = r.Keys.Cell(&id); err != nil {
		return err
	}
	n.identity.Store(&id)
	return nil
}

// Prepare finds what n's key needs in addition to the results of other cells: its sources and its program.
func (r *Resolver) Prepare(n *Cell) error {
	if n.ID().LacksSources() {
		if err := r.findSources(n); err != nil {
			return err
		}
	}
	if n.ID().LacksProgram() {
		return r.Recall(n)
	}
	return nil
}

// LookUp looks for results under n's key that are good enough.
func (r *Resolver) LookUp(n *Cell) Look {
	look := Look{Looked: true}
	hit, ok := r.Store.Lookup(n.ID().Key, r.Class)
	if ok && r.refusedSince(n, hit) {
		hit, ok = r.Store.Lookup(n.ID().Key, r.MadeBy("cpu"))
	}
	if !ok {
		look.Reason = NothingStored
		return look
	}
	if look.Reason = r.insufficient(n, hit); look.Reason != "" {
		look.Before = &hit
		return look
	}
	n.Take(hit, nil)
	look.Found = true
	return look
}

// NothingStored is the usual reason why a cell is executed; the others are worth a word. Forced is that of
// cells that are executed whatever is stored.
const (
	NothingStored = "nothing is stored under its key"
	Forced        = "forced"
)

// insufficient returns why what is stored of n isn't good enough, "" if it is.
func (r *Resolver) insufficient(n *Cell, hit store.Hit) string {
	if r.SameDevice && n.Stage.Device && hit.MadeBy() != r.Class {
		return "it was made by " + hit.MadeBy()
	}
	if r.Forced(n.Cell) {
		return Forced
	}
	if r.refusedSince(n, hit) {
		return "it was made by " + hit.MadeBy() + ", which was refused for it since"
	}
	if hit.Outputs() < n.ports {
		return fmt.Sprintf("it was made without the output %q", n.Stage.Outputs[n.ports-1].Name)
	}
	for p := range hit.Objects() {
		if m := r.Store.Check(p); m != nil { // by size alone
			return m.Error()
		}
	}
	return ""
}

// Forced reports whether a cell is to be executed whatever is stored.
func (r *Resolver) Forced(c *plan.Cell) bool { return r.Force != nil && r.Force(c) }

// Here names what would make results of the devices in use.
func (r *Resolver) Here() string {
	if r.Class != "" {
		return r.Class
	}
	return r.MadeBy(r.Devices)
}
