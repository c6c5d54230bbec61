// Package stages is the contract between the engine, which schedules work without knowing its content, and
// the stages, which do the work. It depends on the standard library alone.
//
//   - A [Stage] is a named step of an experiment, declared by a [Def] (stage.go).
//   - A [Field] is one of its parameters, read from a struct tag (params.go).
//   - A [Port] is a typed input or output of a stage (port.go).
//   - A payload is the bytes of one item, or of one value such as a model. It is a [Tensor], a [Table] or a
//     file, and contains no names, ids, times or paths (tensor.go, table.go); [Words] are a text to read
//     (words.go), [ItemColumns] what tables split items by (columns.go).
//   - An [Item] names a payload: its id, the origin it was derived from, its digest; [Facts] are properties
//     shared by all items of a port, such as the direction of a score (item.go).
//   - An [Env] is the environment of a running stage: its inputs, its random numbers, its device (env.go),
//     and the order and labels of ids (order.go). Its labels may be of other classes than its model
//     (classes.go).
//   - [Precise] chooses the arithmetic of a model's passes (precision.go).
//   - [Deviation] compares the results of two devices (deviation.go), a [Definition] describes a metric
//     (definition.go), and a [Variant] documents where paper and official code differ (variant.go).
//   - A [Replacement] says what the points of a curve replace (replacement.go).
//   - Files are opened safely (file.go), recognised when they are the wrong ones (mistaken.go), and stamped,
//     so that an unchanged file isn't read again (stamp.go, stamp_*.go). nearest.go suggests a name for a
//     mistyped one.
package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
)

// A Relation defines how output items depend on input items. Each and Expand stages are incremental: the
// engine runs them only on items whose results are unknown. On ports with [Port.Over], Each stages take an
// item from every cell along the axes that over collapses, such as random draws.
type Relation int

const (
	Each   Relation = iota // one item in, one item out, on every output port
	Expand                 // one item in, any number of items out
	Whole                  // the stage sees all its inputs at once
)

var relationNames = [...]string{"each", "expand", "whole"}

func (r Relation) String() string { return relationNames[r] }

// UsualTolerance is the tolerance of a stage on devices of other classes that declares none.
const UsualTolerance = 1e-4

// A Def declares a stage whose parameters have type P, a struct whose fields carry the tags described by
// [Field]. If P or *P has a method Validate() error, it is called after decoding. Functions that a stage
// doesn't need are nil.
type Def[P any] struct {
	Name     string // "family/kebab-case"
	Doc      string // the first line is a title; prose may follow
	Version  int    // increase it when equal inputs give different bytes
	Relation Relation

	// Seeded adds the experiment's seed to the stage's keys and lets the stage draw random numbers from its
	// Env.
	Seeded bool

	// Named adds the ids of the input items to the stage's keys, for the few stages whose payloads show ids.
	// Without it, renaming an image re-runs nothing.
	Named bool

	// Ordered adds the order in which the experiment lists the ids of collapsed axes, their labels and
	// families to the keys of a Whole stage and sets [Env.Order], [Env.Labels] and [Env.Families], for stages
	// that display them. Other stages get sorted ids, so that reordering or labelling an axis re-runs
	// nothing.
	Ordered bool

	// Device reports whether the stage computes on the device of its slot.
	Device bool

	// Tolerance is the largest [Deviation] of the results of another class of devices from a processor's; 0
	// stands for [UsualTolerance].
	Tolerance float64

	// Shared is the function that does the work of several cells at once, instead of Run, if the stage
	// shares it with others.
	Shared *SharedRun

	Inputs   []Port
	Outputs  []Port
	Defaults P

	// Definition describes a metric, for the reference. It doesn't affect results.
	Definition Definition

	// Variants lists the differences between paper and official code in the computation of this stage, for
	// the reference. It doesn't affect results.
	Variants []Variant

	// Passes are the cost of an item, for the reference.
	Passes Passes

	// Check validates parameters against the ports that are wired.
	Check func(p P, wired func(port string) bool) error

	// Sources lists the files and seeds that the stage reads from outside the experiment. A Whole stage
	// gets nil ids and may use the sources as it likes. A stage without item inputs gets nil ids too, and
	// makes one item (Each) or several (Expand) of each source. An itemwise stage with item inputs gets the
	// ids of its first item port and returns one source for each, in that order. The engine digests the
	// files, and again after the work: results of files that changed in between aren't stored.
	Sources func(p P, ids []string) ([]Source, error)

	// Facts derives the facts of output ports from the parameters and the facts of inputs (of the first cell,
	// where axes are collapsed; see [Stage.FactsOf]). It must not depend on items. Whole stages may call
	// [Env.SetFacts] instead while they run.
	Facts func(p P, in map[string]Facts) (map[string]Facts, error)

	// Declares returns what is known of the results before the stage is run, and that parameters of their
	// readers may be taken from: see [Field]. in has what the stage on an input port declares: for every port
	// that is wired, and for one that an implied stage feeds if that declares something. It enters keys as
	// the value of those parameters, and no other.
	Declares func(p P, in map[string]Declared) Declared

	// Program returns the digest of the compiled program that Run would execute. It enters the keys in
	// addition to Version, so that a change of the compiler re-runs exactly the cells whose program changed.
	// It may read only [Env.Value] inputs and which ports are wired; its result is cached under these, the
	// version, p, and the build.
	Program func(ctx context.Context, p P, e *Env) (Digest, error)

	// Run does the work. For Each and Expand it is called once per chunk, for items 0 ≤ i < e.Len(),
	// concurrently for different chunks. It returns early if ctx is cancelled. If its error wraps
	// [ErrOutOfMemory] the engine retries with half of Env.Batch, or with the batch of a [BatchError], and
	// later chunks of the cell start with that batch. If it wraps [ErrDeviceLost], the chunk is computed on
	// another device.
	Run func(ctx context.Context, p P, e *Env) error

	// Hooks are functions that describe the results before the stage is run.
	Hooks func(p P) Hooks
}

// Declared are properties by which the results of a stage are read, such as that the values of a map are
// gradients: names of parameters of readers, and their values.
type Declared map[string]string

// AsDeclared is the value of a parameter that is replaced by what a stage declares.
const AsDeclared = "declared"

// Hooks are functions that few stages have, given their parameters; the others are nil. None affects results.
type Hooks struct {
	// Lacks returns why an output port has no items with these inputs, nil for one that has. An edge from a
	// port without items is an error before the experiment is run.
	Lacks func(port string, wired func(port string) bool) error

	// Most returns the largest number of items that an Expand or Whole stage makes on its first output
	// port, −1 if unknown. Without Most it is unknown. in has the sources of a data set as [SourcesAmount].
	Most func(in map[string]Amount) int

	// Few returns an error if the stage needs more items than it gets: what for, and how many; nil if they
	// suffice. It is a warning before the experiment is run, and Few is called only if the number of items
	// on every wired port is known.
	Few func(in map[string]Amount) error

	// Power says which differences the stage's tests can confirm with the items that it gets. It is called
	// as Few is; an empty text says nothing.
	Power func(in map[string]Amount) Power

	// Marks names the tests of which the marks of the stage's tables are, or of tables that are made of them,
	// as "Wilcoxon's signed-rank test at 0.05".
	Marks string

	// Present returns a text of a finished cell as people read it, given the cell's tables by port. What it
	// adds follows from them and isn't stored.
	Present func(text string, tables map[string]Table) string

	// Replaces says what the points of the stage's curves replace in the order of the ranks that it reads, so
	// that a page can show it; nil for other curves.
	Replaces *Replacement

	// Remarks returns remarks for the user, in sentences: files from which Sources lists that aren't used,
	// and files that are interpreted otherwise than written. Checks, runs and review folders repeat them.
	Remarks func() []string
}

// A Stage is a [Def] whose parameter type is erased, so that one list can hold every stage: its functions
// take the result of NewParams, decoded. Stages are made by [New].
type Stage struct {
	Def[any]

	// Rounding has, by precision, how much its results may deviate from those in float32, as it was measured.
	// A precision without one is refused. The list of stages sets it.
	Rounding map[string]Rounding

	// NewParams returns a pointer to a fresh copy of the default parameters.
	NewParams func() any
}

// Passes are the forward and backward passes through the model that a stage computes for an item, "" for
// none: formulas of parameters, numbers, +, −, × and parentheses, such as "2 × steps + 1", or bounds such
// as "≤ steps". [PassQuantities] has the quantities that parameters don't determine. Rows that only fill up a
// batch are no passes; cells that share a forward pass, or points of their curves, need less. No result
// depends on Passes.
type Passes struct{ Forward, Backward string }

// String describes the passes in words: "steps + 2 forward, steps backward", or "none".
func (p Passes) String() string {
	var parts []string
	if p.Forward != "" {
		parts = append(parts, p.Forward+" forward")
	}
	if p.Backward != "" {
		parts = append(parts, p.Backward+" backward")
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// PassQuantities are the names in the formulas of [Passes] that aren't parameters.
var PassQuantities = map[string]string{
	"cells":      "cells of the layer's grid",
	"channels":   "channels of the layer",
	"points":     "points of the curve, by default steps + 1",
	"rows":       "subsets of the image's units, by default 100",
	"rivals":     "false classes that paths lead to",
	"thresholds": "thresholds of the curve, less those that choose the same pixels",
	"windows":    "windows that cover the image",
}

// An Amount is the number of items of an input port that is known before the experiment is run.
type Amount struct {
	Items  int            // the largest possible number, in the cell with the fewest
	AtMost bool           // it may be smaller: the stage that makes them chooses
	Noun   string         // what they are, in the plural: "texts"; "" for images
	IDs    map[string]int // of each collapsed axis
}

// SourcesAmount is the name of the number of a data set's sources among amounts, which no port has.
const SourcesAmount = ""

// A Power is what statistical tests can confirm.
type Power struct {
	Text    string // the number of items and what it can confirm, in a sentence without a full stop
	Nothing bool   // no difference can be confirmed, however large
	Enough  bool   // a difference of half a standard deviation is confirmed with a probability of 0.8
}

// A SharedRun is the work that several stages have in common, such as the forward pass of a model. The
// stages are itemwise of relation [Each] and have the same input ports. The engine calls Run once a chunk
// for all cells of these stages that read the same items and need the results of the same ones. The results
// that Run puts for a cell must not depend on the other cells. If it returns an error, each cell is called
// alone.
type SharedRun struct {
	Run func(ctx context.Context, parts []Part) error
}

// A Part is one cell of a shared run: its parameters, as [Stage.NewParams] returns them, and its Env. All
// Envs have the same slot, batch and items.
type Part struct {
	Params any
	Env    *Env
}

// ErrOutOfMemory is wrapped by errors caused by a lack of device or host memory.
var ErrOutOfMemory = errors.New("out of memory")

// ErrDeviceLost is wrapped by errors of a device that this process can't use any more: a driver that was
// reset, a card that fell off the bus, a fault that its context doesn't survive.
var ErrDeviceLost = errors.New("the device is lost")

// A BatchError is an error that wraps [ErrOutOfMemory] and knows the batch.
type BatchError struct {
	Err     error
	Rows    int // rows of the batch
	Smaller int // the Env.Batch that may fit; 0 if the work can't be done with fewer rows
}

func (e *BatchError) Error() string {
	if e.Rows == 1 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v, for a batch of %d", e.Err, e.Rows)
}

func (e *BatchError) Unwrap() error { return e.Err }

// New turns a declaration into a [Stage].
func New[P any](d Def[P]) Stage {
	of := func(params any) P { return *params.(*P) }
	if p, ok := any(&d.Defaults).(inPrecision); ok {
		p.precise().Precision = cmp.Or(p.precise().Precision, Float32)
	}
	s := Stage{Def: alike(reflect.ValueOf(d)), NewParams: func() any { p := d.Defaults; return &p }}
	s.Tolerance = cmp.Or(d.Tolerance, UsualTolerance)
	s.Check = given(d.Check != nil, func(params any, wired func(string) bool) error {
		return d.Check(of(params), wired)
	})
	s.Sources = given(d.Sources != nil, func(params any, ids []string) ([]Source, error) {
		return d.Sources(of(params), ids)
	})
	s.Facts = given(d.Facts != nil, func(params any, in map[string]Facts) (map[string]Facts, error) {
		return d.Facts(of(params), in)
	})
	s.Declares = given(d.Declares != nil, func(params any, in map[string]Declared) Declared {
		return d.Declares(of(params), in)
	})
	s.Program = given(d.Program != nil, func(ctx context.Context, params any, e *Env) (Digest, error) {
		e.Precision = PrecisionOf(params)
		return d.Program(ctx, of(params), e)
	})
	s.Hooks = given(d.Hooks != nil, func(params any) Hooks { return d.Hooks(of(params)) })
	s.Run = func(ctx context.Context, params any, e *Env) error {
		e.Precision = PrecisionOf(params)
		if d.Shared != nil {
			return d.Shared.Run(ctx, []Part{{params, e}})
		}
		return d.Run(ctx, of(params), e)
	}
	return s
}

// alike returns a declaration with the fields of d whose type doesn't depend on that of its parameters, and
// with its defaults.
func alike(d reflect.Value) (out Def[any]) {
	to := reflect.ValueOf(&out).Elem()
	for i := range d.NumField() {
		if f := d.Field(i); f.Type().AssignableTo(to.Field(i).Type()) {
			to.Field(i).Set(f)
		}
	}
	return out
}

// given returns f if the declaration has the function that f calls, and nil otherwise.
func given[F any](declared bool, f F) (none F) {
	if declared {
		return f
	}
	return none
}

// HooksOf returns the hooks of a stage with these parameters.
func (s *Stage) HooksOf(params any) Hooks {
	if s.Hooks == nil {
		return Hooks{}
	}
	return s.Hooks(params)
}

// FactsOf derives the facts of output ports from the data on the input ports: from the facts of the first
// cell and, on a port with Over, from the fact "cells", the number of cells. It hands on [ItemsFact].
func (s *Stage) FactsOf(params any, ports map[string][]Data) (out map[string]Facts, err error) {
	if s.Facts != nil {
		if out, err = s.ownFacts(params, ports); err != nil {
			return nil, err
		}
	}
	items := s.itemsOf(ports)
	if items == imageItems {
		return out, nil
	}
	all := map[string]Facts{}
	for i := range s.Outputs {
		port := s.Outputs[i].Name
		all[port] = named(out[port], items)
	}
	return all, nil
}

// itemsOf says what the items are of the first input port whose items aren't images.
func (s *Stage) itemsOf(ports map[string][]Data) string {
	for i := range s.Inputs {
		if items := ItemsOf(ports[s.Inputs[i].Name]); items != imageItems {
			return items
		}
	}
	return imageItems
}

// named returns facts with those of items, unless they have a name or are images.
func named(f Facts, items string) Facts {
	if items == imageItems || f[ItemsFact] != "" {
		return f
	}
	out := Facts{ItemsFact: items}
	maps.Copy(out, f)
	return out
}

func (s *Stage) ownFacts(params any, ports map[string][]Data) (map[string]Facts, error) {
	in := map[string]Facts{}
	for name, data := range ports {
		if len(data) == 0 {
			continue
		}
		in[name] = data[0].Facts
		if p := s.Input(name); p != nil && p.Over {
			in[name] = Facts{}
			maps.Copy(in[name], data[0].Facts)
			in[name]["cells"] = strconv.Itoa(len(data))
		}
	}
	return s.Facts(params, in)
}

// Input returns the input port called name, or nil.
func (s *Stage) Input(name string) *Port { return find(s.Inputs, name) }

// Output returns the output port called name, or nil.
func (s *Stage) Output(name string) *Port { return find(s.Outputs, name) }

// Primary returns the index of the first input port of items, whose items an itemwise stage runs on, or -1 if
// the stage makes its items from sources.
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

// A FieldError is an error of Validate or Check about one parameter, so that the message can point at its
// line.
type FieldError struct {
	Field string // the YAML name
	Err   error

	// Name is the invalid name, if the value or an element of a list names something unknown; Names are the
	// valid names, for a suggestion.
	Name  string
	Names []string

	Hint string // how to fix it, if Names doesn't suffice

	// Column is the character of the value, from 1, at which the error is; 0 is the whole value.
	Column int
}

func (e *FieldError) Error() string { return e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// BadField returns a [FieldError] for the parameter called field.
func BadField(field, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// GoesWith returns a [FieldError] unless a field has one of its values where a port is wired, and only there.
func GoesWith(field, value, with, port string, wired bool) error {
	switch {
	case wired && value != with:
		return &FieldError{Field: field, Hint: "write " + field + ": " + with, Err: fmt.Errorf(
			"%s is %s, but the port %s is wired, which %[1]s: %[4]s alone reads", field, value, port, with)}
	case !wired && value == with:
		return &FieldError{Field: field, Hint: "wire " + port, Err: fmt.Errorf(
			"%s is %s, but the port %s, which it reads, isn't wired", field, value, port)}
	}
	return nil
}

// BadName returns the [FieldError] of a field that names something unknown.
func BadName(field, name string, names []string, format string, args ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf(format, args...), Name: name, Names: names}
}
