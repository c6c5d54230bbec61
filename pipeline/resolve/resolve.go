// Package resolve turns cells into keys, and keys into the results stored under them.
//
//   - resolve: a [Resolver] gives a cell its identity and looks it up, in a plan ahead of everything else.
//   - cell: a cell's identity, and its outcome, which one mutex guards.
//   - sources, program: the parts of an identity that take work.
//   - results, data: the results of finished cells; a [Lost] error asks for another execution.
//   - refusal: devices whose results aren't taken any more.
//   - share: the items of one of many machines.
//   - warnings: the warnings of a cell's stage.
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

// A Store is the part of the store that a resolver needs.
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

// Options select the results that a resolver uses.
type Options struct {
	Store Store
	// Class is the class of the devices in use, and MadeBy names what makes the results of a class, or of a
	// class in a precision: "cpu", "cpu bfloat16".
	Class  string
	MadeBy func(class string) string
	// MadeHere is what makes results of the devices in use, which are preferred; "" until somebody asks for
	// it.
	MadeHere string
	// Compiler identifies the compiler of programs, so that another one doesn't trust their digests.
	Compiler func() string
	// SameDevice uses only results of the maker that MadeBy identifies.
	SameDevice bool
	// Force reports whether to execute a cell regardless of stored results; it may be nil.
	Force func(*plan.Cell) bool
	// Compiling is the cache in which programs are compiled.
	Compiling *device.Cache
	Events    Events
}

// Events are called from any goroutine as the work goes on.
type Events interface {
	Compiling(*plan.Cell)           // its program
	Warn(c *plan.Cell, text string) // about something that isn't an error
}

// A Resolver turns the cells of a plan into keys and keys into the results stored under them.
type Resolver struct {
	Options
	Plan  *plan.Plan
	Cells []*Cell // by index in the plan
	Keys  *key.Maker

	texts    *store.Texts // of sources
	programs programs
	share    *Share    // the items' share, nil for all
	whole    *Resolver // for a share: the resolver of all items
	noted    bool      // files without a digest in the store aren't read
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

// Of returns the cell from which an edge comes.
func (r *Resolver) Of(e plan.Edge) *Cell { return r.Cells[e.From.Index] }

// A Look is a resolver's findings about a cell.
type Look struct {
	Fresh  bool       // all inputs had results, and nobody has acted on the look yet
	Found  bool       // the cell has results
	Reason string     // why it has none
	Before *store.Hit // stored results that aren't good enough
	Err    error      // why the results can't be known; [ErrNotCompiled] if compiling would show them
}

// LookAhead looks up, on all cores, every cell whose inputs are all stored: in a run that changes little,
// these are nearly all cells. After a new build, it finds the cells that the compiler compiles differently.
// It ends early when stop is closed. The list is by index in the plan.
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

// lookAhead looks n up if its inputs are stored. An error that only means that it is too early isn't kept.
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

// Look makes n's key and looks it up; all inputs must have finished.
func (r *Resolver) Look(n *Cell) Look {
	if err := r.MakeKey(n); err != nil {
		return Look{Fresh: true, Err: err}
	}
	return r.LookUp(n)
}

// MakeKey makes n's key; all inputs must have finished.
func (r *Resolver) MakeKey(n *Cell) error {
	id := *n.ID()
	if err := r.prepare(&id); err != nil {
		n.learn(&id)
		return err
	}
	k, err := r.Keys.Cell(&id)
	if err == nil {
		id.Key = k
	}
	n.learn(&id)
	return err
}

// Prepare finds the parts of n's key that aren't results of other cells: its sources and its program.
func (r *Resolver) Prepare(n *Cell) error {
	id := *n.ID()
	err := r.prepare(&id)
	n.learn(&id)
	return err
}

// prepare fills in the sources and the program, if they can be found, of an identity that no cell has yet.
func (r *Resolver) prepare(id *key.Identity) (err error) {
	if id.LacksSources() {
		if id.Sources, err = r.findSources(id); err != nil {
			return err
		}
	}
	if id.LacksProgram() {
		id.Program, err = r.recall(id)
	}
	return err
}

// LookUp looks for results under n's key that are good enough.
func (r *Resolver) LookUp(n *Cell) Look {
	look := Look{Fresh: true}
	hit, ok := r.Store.Lookup(n.ID().Key, r.Maker(n))
	if ok && r.refusedSince(n, hit) {
		hit, ok = r.Store.Lookup(n.ID().Key, r.ProcessorMaker(n))
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

// NothingStored is the usual reason why a cell is executed; other reasons are reported. ForcedReason is the
// reason for cells that are executed regardless of stored results.
const (
	NothingStored = "nothing is stored under its key"
	ForcedReason  = "forced"
)

// insufficient returns why the stored results of n aren't good enough, "" if they are.
func (r *Resolver) insufficient(n *Cell, hit store.Hit) string {
	if r.SameDevice && n.Stage.Device && hit.MadeBy() != r.Maker(n) {
		return "it was made by " + hit.MadeBy()
	}
	if r.Forced(n.Cell) {
		return ForcedReason
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

// Forced reports whether a cell is to be executed regardless of stored results.
func (r *Resolver) Forced(c *plan.Cell) bool { return r.Force != nil && r.Force(c) }

// Maker identifies what makes n's results on the devices in use; "" until somebody asks for it.
func (r *Resolver) Maker(n *Cell) string {
	if r.MadeHere == "" {
		return ""
	}
	return r.maker(n, r.Class, r.MadeHere)
}

// ProcessorMaker identifies what makes n's results on a processor.
func (r *Resolver) ProcessorMaker(n *Cell) string { return r.maker(n, "cpu", r.MadeBy("cpu")) }

// maker identifies what makes n's results on devices of a class, given what makes those in float32.
func (r *Resolver) maker(n *Cell, class, inFloat32 string) string {
	if p := stages.PrecisionOf(n.Params); n.Stage.Device && p != stages.Float32 {
		return r.MadeBy(class + " " + p)
	}
	return inFloat32
}

// Here identifies the maker of results of the devices in use.
func (r *Resolver) Here() string {
	if r.MadeHere != "" {
		return r.MadeHere
	}
	return r.MadeBy(r.Class)
}
