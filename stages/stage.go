// Package stages is the contract between the engine, which schedules work it doesn't understand, and the
// work: what a stage is, what travels between stages, and what a stage may ask of its surroundings. It
// depends on the standard library alone.
//
//   - A [Stage] is a named step of an experiment, declared by a [Def].
//   - A [Port] is a typed input or output of a stage.
//   - A payload is the bytes of one item, or of one value such as a model or a
//     table. Payloads hold no names, ids, times or paths.
//   - An [Item] names a payload: its id, the origin it was made from, its digest.
//   - [Facts] say what holds for all items of a port: the direction of a score,
//     the classes of a model.
//   - An [Env] is what a running stage sees: its items, its randomness, its device.
package stages

import (
	"context"
	"errors"
	"fmt"
)

// A Relation says how a stage's output items depend on its input items. Each, Expand and Group make a stage
// incremental: the engine hands it only the items whose results aren't known.
type Relation int

const (
	Each   Relation = iota // one item in, one item out, on every output port
	Expand                 // one item in, any number of items out
	Group                  // all items of one origin in, one item out
	Whole                  // the stage sees everything at once
)

var relationNames = [...]string{"each", "expand", "group", "whole"}

func (r Relation) String() string { return relationNames[r] }

// A Stage is one kind of work, with its parameter type erased so that the engine can hold every stage in one
// list. Make one with [New].
type Stage struct {
	Name     string // "family/kebab-case"
	Doc      string // the first line is a title, prose may follow
	Version  int
	Relation Relation
	Seeded   bool
	Named    bool
	Ordered  bool
	Device   bool
	Together string
	Inputs   []Port
	Outputs  []Port
	Variants []Variant

	// NewParams returns a pointer to a fresh copy of the default parameters.
	NewParams func() any

	// The rest mirrors the fields of [Def]; params is what NewParams returned, decoded. A nil function means
	// that the stage doesn't have that part.
	Check   func(params any, wired func(port string) bool) error
	Sources func(params any, ids []string) ([]Source, error)
	Facts   func(params any, in map[string]Facts) (map[string]Facts, error)
	Program func(ctx context.Context, params any, e *Env) (Digest, error)
	Run     func(ctx context.Context, params any, e *Env) error
}

// A Def declares a stage whose parameters have type P, a struct whose fields carry the tags that [Fields]
// describes. If P or *P has a method Validate() error, it is called once parameters are decoded.
type Def[P any] struct {
	Name     string
	Doc      string
	Version  int // raise it when equal inputs give different bytes
	Relation Relation

	// Seeded puts the experiment's seed into the stage's keys and lets it draw random numbers from its Env.
	Seeded bool

	// Named puts the ids of its input items into the stage's keys: for the few stages whose payloads show
	// ids. Without it a renamed image costs nothing.
	Named bool

	// Ordered puts the order in which the experiment writes the ids of collapsed axes into the keys of a
	// Whole stage and hands it over in [Env.Order]: for stages that show them. The others get sorted ids, so
	// reordering an axis costs them nothing.
	Ordered bool

	// Device says that the stage computes on the device of its slot.
	Device bool

	// Together names stages, all of them Each, whose work on one item has parts in common. Cells of such
	// stages that read the same outputs go side by side, chunk by chunk on one slot, and see each other in
	// [Env.Beside]. That may spare work; it must not change a result.
	Together string

	Inputs   []Port
	Outputs  []Port
	Defaults P

	// Variants lists where paper and official code differ on what this stage computes, for the reference. It
	// has no influence on what runs.
	Variants []Variant

	// Check refuses parameters that don't fit the ports that are wired.
	Check func(p P, wired func(port string) bool) error

	// Sources lists what the stage reads from outside the experiment. A Whole stage gets nil ids and makes
	// what it likes of all sources; one without item inputs gets nil ids too, and makes one item (Each) or
	// several (Expand) of each source. An itemwise stage with item inputs gets the ids of its first item port
	// and returns as many sources, in that order. The engine digests the files, and looks at them again after
	// the work: what changed meanwhile isn't stored.
	Sources func(p P, ids []string) ([]Source, error)

	// Facts derives the facts of output ports from parameters and the facts of inputs (of the first cell,
	// where axes are collapsed). It must not depend on the items. Whole stages may set facts while they run
	// instead, [Env.SetFacts].
	Facts func(p P, in map[string]Facts) (map[string]Facts, error)

	// Program returns the digest of the compiled program that Run would execute. It stands in the keys beside
	// Version, so that a change of the compiler re-runs exactly the cells whose program changed. It may read
	// only [Env.Value] inputs and which ports are wired, and is remembered under these, the version, p, and
	// the build.
	Program func(ctx context.Context, p P, e *Env) (Digest, error)

	// Run does the work. For Each, Expand and Group it is called once a chunk, for items 0 ≤ i < e.Len(),
	// concurrently for different chunks. It returns early when ctx is cancelled. An error that wraps
	// [ErrOutOfMemory] makes the engine try again with half of Env.Batch, where the cell's later chunks
	// begin.
	Run func(ctx context.Context, p P, e *Env) error
}

// ErrOutOfMemory marks an error as lack of device or host memory.
var ErrOutOfMemory = errors.New("out of memory")

// New turns a declaration into a [Stage].
func New[P any](d Def[P]) Stage {
	s := Stage{
		Name: d.Name, Doc: d.Doc, Version: d.Version, Relation: d.Relation,
		Seeded: d.Seeded, Named: d.Named, Ordered: d.Ordered, Device: d.Device, Together: d.Together,
		Inputs: d.Inputs, Outputs: d.Outputs, Variants: d.Variants,
		NewParams: func() any { p := d.Defaults; return &p },
		Run: func(ctx context.Context, params any, e *Env) error {
			return d.Run(ctx, *params.(*P), e)
		},
	}
	if d.Check != nil {
		s.Check = func(params any, wired func(string) bool) error { return d.Check(*params.(*P), wired) }
	}
	if d.Sources != nil {
		s.Sources = func(params any, ids []string) ([]Source, error) { return d.Sources(*params.(*P), ids) }
	}
	if d.Facts != nil {
		s.Facts = func(params any, in map[string]Facts) (map[string]Facts, error) {
			return d.Facts(*params.(*P), in)
		}
	}
	if d.Program != nil {
		s.Program = func(ctx context.Context, params any, e *Env) (Digest, error) {
			return d.Program(ctx, *params.(*P), e)
		}
	}
	return s
}

// Input returns the input port called name, or nil.
func (s *Stage) Input(name string) *Port { return find(s.Inputs, name) }

// Output returns the output port called name, or nil.
func (s *Stage) Output(name string) *Port { return find(s.Outputs, name) }

// Primary returns the index of the first input port of items, which gives an itemwise stage its items, or -1
// when the stage makes items of its sources.
func (s *Stage) Primary() int {
	if s.Relation == Whole {
		return -1
	}
	for i := range s.Inputs {
		if s.Inputs[i].Type.Items {
			return i
		}
	}
	return -1
}

func find(ports []Port, name string) *Port {
	for i := range ports {
		if ports[i].Name == name {
			return &ports[i]
		}
	}
	return nil
}

// A FieldError says which parameter an error of Validate or Check concerns, so that the message can point at
// its line.
type FieldError struct {
	Field string // the YAML name
	Err   error

	// Name is the value, or the element of a list, that is wrong, where the error is of a name; with Names,
	// those that are right, for a hint at the one that was meant.
	Name  string
	Names []string

	Hint string // what to do about it, where Names doesn't tell
}

func (e *FieldError) Error() string { return e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// BadField returns a [FieldError] for the parameter called field.
func BadField(field, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// BadName returns the [FieldError] of a field that names nothing that there is.
func BadName(field, name string, names []string, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...), Name: name, Names: names}
}
