package stages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// DeviceClasses are the classes of devices: the processor, NVIDIA's GPUs by CUDA, any GPU by WebGPU.
var DeviceClasses = []string{"cpu", "cuda", "webgpu"}

// A Device is a place where a stage computes.
type Device struct {
	Class   string // one of [DeviceClasses]
	Index   int
	Threads int // CPU threads to use; 0 means all
	// Precision is one of [Precisions]; "" means float32. Slots have none: a program is loaded with one.
	Precision string
	// Backward is set for a program with a backward pass, which some providers compile otherwise.
	Backward bool
}

func (d Device) String() string { return fmt.Sprintf("%s:%d", d.Class, d.Index) }

// A Slot is a device together with the values that are loaded on it. It runs one chunk at a time.
type Slot interface {
	Device() Device
	// Keep returns the value that make produced for this key on this slot, calling make if there is none.
	// Values that go unused are closed when memory is needed, never while a chunk runs. weight is the value's
	// approximate size in bytes. make may call Keep and Share with other keys.
	Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error)
	// Share is Keep for values that several slots may use at once: concurrent callers on one processor wait
	// for the first and get its value or error. make must not ask for its own key.
	Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error)
}

// A Weighed value knows its exact size in bytes once it is made; 0 if it doesn't.
type Weighed interface{ Weight() int64 }

// A Meter is a [Slot] that counts passes through models, and what it takes to compile their programs.
type Meter interface {
	// Passed counts the forward and backward passes of a run, a row each that was asked for: rows that only
	// fill up its batch aren't.
	Passed(forward, backward int)
	// Compiled counts programs that were compiled, while the slot makes a value, and time of a run that went
	// into compiling.
	Compiled(programs int, late time.Duration)
}

// A Remembering slot lets programs find out the best settings for its device, such as the batch, and keeps
// them.
type Remembering interface {
	// Memory is nil if programs are to keep to the given settings.
	Memory() Memory
}

// A Memory keeps facts that programs have found out about a device, also for later runs. No key depends on
// them.
type Memory interface {
	Recall(what string) ([]byte, bool)
	Remember(what string, found []byte)
}

// Data is the data that one upstream cell passes to an input port.
type Data struct {
	Coord []Coord // the cell's coordinates on the collapsed axes, sorted by axis; empty if none is collapsed
	// Replicate is the cell's coordinates on the collapsed axes that only seeds read, which Coord then lacks;
	// only on ports with [Port.Averages].
	Replicate []Coord
	Facts     Facts
	// Items holds every item of the port in order, for a Whole stage; for a value, a single item with an
	// empty id.
	Items Items
	// Load returns the payload of item i, which the caller must not modify.
	Load func(i int) ([]byte, error)
	// Base is the value that this value's payload refers to: see [Port.Base].
	Base *Data
}

// All iterates over the port's items and their payloads in order, up to the first error.
func (d Data) All(ctx context.Context) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		for i := range d.Items.Len() {
			m, err := d.member(ctx, i)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func (d Data) member(ctx context.Context, i int) (m Member, err error) {
	if ctx.Err() != nil {
		return m, context.Cause(ctx)
	}
	if m.Item, err = d.Items.At(i); err != nil {
		return m, err
	}
	m.Data, err = d.Load(i)
	return m, err
}

// A Member is an item of an input port together with its payload.
type Member struct {
	Item
	Coord []Coord // of the cell it comes from, on the collapsed axes, sorted by axis
	Data  []byte  // nil on a port with Over, whose payloads [Env.All] loads
	Load  func() ([]byte, error)
}

// A Call is one item of an itemwise call and its inputs. A call made from a source has the source's id and,
// if the source is a file, the digest of the file and the note.
type Call struct {
	// Item is an item of the first port of items on which no axis is collapsed. If all ports of items are
	// collapsed, it is the common part of the collapsed cells' items, with the digest of the first. The
	// comment of Call covers stages without ports of items.
	Item
	Source  *Source    // if the stage has Sources
	Members [][]Member // by input port, in the order of Stage.Inputs; nil for unwired ports and for values
}

// An Output is a payload that a stage has put on a port.
type Output struct {
	Port   string
	Call   int    // itemwise: index into Env.Calls
	ID     string // Expand: suffix of the item's id; Whole: the item's id, "" for a value
	Origin string // Whole, items: the item's origin, "" if it equals ID
	Data   []byte

	// From is the input port whose item at Index is put as it is, "" for Data.
	From  string
	Index int
}

// Env is the environment of a running stage. Only one goroutine may call its methods at a time.
type Env struct {
	// Stage is the running stage.
	Stage *Stage
	// Slot is the slot on which the stage computes.
	Slot Slot
	// Batch is the number of items or forward passes to pass to the device at once. No output may depend on
	// it.
	Batch int
	// Precision is the precision of the model's passes, that of the stage's parameters.
	Precision string
	// Calls are the items of an itemwise call.
	Calls []Call
	// Ports holds the upstream data by input port: every port for a Whole stage, value ports for the others.
	// Itemwise stages find the Facts of their item ports here too.
	Ports map[string][]Data
	// Order is the order of the ids on the collapsed axes, and on the axes that the makers of input tables
	// collapsed; set for Ordered stages only.
	Order Order
	// Labels and Families are the names of the ids in Order; set for Ordered stages only.
	Labels, Families Names
	// Read are the sources of a Whole stage.
	Read []Source
	// Seed is the seed of the stage, by default the experiment's, or 0 if the stage isn't Seeded.
	Seed uint64
	// OnWarn, if set, receives warnings for the user.
	OnWarn func(Warning)
	// OnDone, if set, receives the number of items finished since the last call.
	OnDone func(n int)

	// Outputs and OutFacts collect the results.
	Outputs  []Output
	OutFacts map[string]Facts
}

// Label returns the name of an id of a collapsed axis in figures and texts: its label, or else the id.
func (e *Env) Label(axis, id string) string {
	if label, ok := e.Labels[axis][id]; ok {
		return label
	}
	return id
}

// Len returns the number of items of an itemwise call.
func (e *Env) Len() int { return len(e.Calls) }

// Wired reports whether an input port is connected.
func (e *Env) Wired(port string) bool { return len(e.Ports[port]) > 0 }

// In returns the payload of item i on an input port of items, or nil if the port isn't wired. The caller must
// not modify it.
func (e *Env) In(port string, i int) []byte {
	m := e.members(port, i)
	if len(m) == 0 {
		return nil
	}
	return m[0].Data
}

// All yields the members of call i on some ports with [Port.Over], loading one payload of each port at a
// time, so that a stage may reduce any number of them. The members of the first port come in the order of
// their coordinates; each comes with the member of every other port that has the same coordinates on their
// common collapsed axes. If a port has none, which happens only under missing: drop, nothing is yielded.
func (e *Env) All(i int, ports ...string) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		for _, m := range e.members(ports[0], i) {
			tuple := []Member{m}
			for _, port := range ports[1:] {
				others := e.members(port, i)
				at := slices.IndexFunc(others, func(o Member) bool { return agree(m.Coord, o.Coord) })
				if at < 0 {
					break
				}
				tuple = append(tuple, others[at])
			}
			if len(tuple) < len(ports) {
				continue
			}
			var err error
			for k := range tuple {
				if tuple[k].Load != nil && err == nil {
					tuple[k].Data, err = tuple[k].Load()
				}
			}
			if !yield(tuple, err) || err != nil {
				return
			}
		}
	}
}

// agree reports whether two coordinates have the same ids on their common axes.
func agree(a, b []Coord) bool {
	return !slices.ContainsFunc(a, func(x Coord) bool {
		return slices.ContainsFunc(b, func(y Coord) bool { return x.Axis == y.Axis && x.ID != y.ID })
	})
}

// members returns the item of a port that belongs to call i, loaded; on a port with [Port.Over], the items
// of all collapsed cells, without their payloads.
func (e *Env) members(port string, i int) []Member {
	for k := range e.Stage.Inputs {
		if e.Stage.Inputs[k].Name == port {
			if k < len(e.Calls[i].Members) {
				return e.Calls[i].Members[k]
			}
			return nil
		}
	}
	panic(fmt.Sprintf("stage %s has no input port %q", e.Stage.Name, port))
}

// Source returns the source of item i.
func (e *Env) Source(i int) Source { return *e.Calls[i].Source }

// Value returns the payload of a value port, or nil if the port isn't wired.
func (e *Env) Value(port string) ([]byte, error) {
	d := e.Ports[port]
	if len(d) == 0 {
		return nil, nil
	}
	return d[0].Load(0)
}

// ValueDigest returns the digest of the payload of a value port.
func (e *Env) ValueDigest(port string) Digest {
	if d := e.Ports[port]; len(d) > 0 && d[0].Items != nil && d[0].Items.Len() > 0 {
		if item, err := d[0].Items.At(0); err == nil { // a value's item is in memory: At can't fail
			return item.Digest
		}
	}
	return Digest{}
}

// Facts returns the facts of an input port; of the first cell if axes are collapsed.
func (e *Env) Facts(port string) Facts {
	if d := e.Ports[port]; len(d) > 0 {
		return d[0].Facts
	}
	return nil
}

// Put sets the result of item i. Each stages put exactly one payload per item on every output port.
func (e *Env) Put(port string, i int, payload []byte) {
	e.Outputs = append(e.Outputs, Output{Port: port, Call: i, Data: payload})
}

// Some returns an environment like e for some of its calls, without outputs.
func (e *Env) Some(calls []int) *Env {
	some := *e
	some.Calls, some.Outputs, some.OutFacts = make([]Call, len(calls)), nil, nil
	for k, i := range calls {
		some.Calls[k] = e.Calls[i]
	}
	return &some
}

// Take appends the outputs of an environment that Some returned for these calls.
func (e *Env) Take(some *Env, calls []int) {
	for _, o := range some.Outputs {
		o.Call = calls[o.Call]
		e.Outputs = append(e.Outputs, o)
	}
}

// Add appends one of the results of item i of an Expand stage. Its id is the item's id, a slash and sub.
func (e *Env) Add(port string, i int, sub string, payload []byte) {
	e.Outputs = append(e.Outputs, Output{Port: port, Call: i, ID: sub, Data: payload})
}

// Emit appends an item to an output port of a Whole stage.
func (e *Env) Emit(port, id, origin string, payload []byte) {
	e.Outputs = append(e.Outputs, Output{Port: port, ID: id, Origin: origin, Data: payload})
}

// Pass appends item i of an input port of items to an output port of a Whole stage, under its own id. Its
// payload isn't read.
func (e *Env) Pass(port, from string, i int) error {
	item, err := e.Ports[from][0].Items.At(i)
	if err == nil {
		e.Outputs = append(e.Outputs, Output{Port: port, ID: item.ID, Origin: item.Origin, From: from,
			Index: i})
	}
	return err
}

// Set sets the value of an output port of a Whole stage.
func (e *Env) Set(port string, payload []byte) { e.Emit(port, "", "", payload) }

// SetFacts sets the facts of an output port of a Whole stage. It hands on [ItemsFact].
func (e *Env) SetFacts(port string, f Facts) {
	if e.OutFacts == nil {
		e.OutFacts = map[string]Facts{}
	}
	if e.Stage != nil {
		f = named(f, e.Stage.itemsOf(e.Ports))
	}
	e.OutFacts[port] = f
}

// A Warning is a message to the user that isn't an error. The user sees one warning per cell and reason, with
// the number of the others.
type Warning struct {
	Reason string // identifies warnings to count as one; not shown
	Text   string
	Item   string // the id of the item concerned, or ""
}

func (w Warning) String() string {
	if w.Item == "" {
		return w.Text
	}
	return fmt.Sprintf("item %q: %s", w.Item, w.Text)
}

// Warn reports a warning. The format string is its reason.
func (e *Env) Warn(format string, args ...any) {
	if e.OnWarn != nil {
		e.OnWarn(Warning{Reason: format, Text: fmt.Sprintf(format, args...)})
	}
}

// WarnItem reports a warning about item i.
func (e *Env) WarnItem(i int, format string, args ...any) {
	if e.OnWarn != nil {
		e.OnWarn(Warning{Reason: format, Text: fmt.Sprintf(format, args...), Item: e.Calls[i].ID})
	}
}

// Done reports that n more items are finished, for the progress display.
func (e *Env) Done(n int) {
	if e.OnDone != nil {
		e.OnDone(n)
	}
}

// Rand returns a generator for one purpose and item i of the call. Its seed depends only on the experiment's
// seed, the stage's name, the purpose and the item's payload digest (for a source: its file and note).
func (e *Env) Rand(purpose string, i int) *rand.Rand {
	c := &e.Calls[i]
	d := c.Digest
	if d == (Digest{}) && c.Source != nil {
		d = Sum([]byte(c.Source.Note))
	}
	return e.rand(purpose, d[:])
}

// SharedRand returns a generator for one purpose, the same for all items.
func (e *Env) SharedRand(purpose string) *rand.Rand { return e.rand(purpose, nil) }

func (e *Env) rand(purpose string, item []byte) *rand.Rand {
	h := sha256.New()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], e.Seed)
	h.Write(n[:])
	for _, s := range []string{e.Stage.Name, purpose, string(item)} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		io.WriteString(h, s)
	}
	return rand.New(rand.NewChaCha8(Digest(h.Sum(nil))))
}
