package stages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
)

// A Device is where a stage computes.
type Device struct {
	Class   string // "cpu" or "cuda"
	Index   int
	Threads int // CPU threads to use; 0 means all
}

func (d Device) String() string { return fmt.Sprintf("%s:%d", d.Class, d.Index) }

// A Slot is a device together with what is loaded on it. One chunk at a time runs on a slot.
type Slot interface {
	Device() Device
	// Keep returns what make made the last time it was called with this key on this slot, or calls it. What
	// isn't used for long is closed when room is needed, never while a chunk runs. weight is its approximate
	// size in bytes. make may call Keep and Share, with other keys.
	Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error)
	// Share does the same for what several slots may use at once: those of one processor make it once, or
	// have the same error. make must not ask for what it makes.
	Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error)
}

// Data is what one upstream cell hands to an input port.
type Data struct {
	Coord []Coord // the cell's place on the collapsed axes, sorted by axis; empty when none is collapsed
	Facts Facts
	// Items has, for a Whole stage, every item of the port in order, or a single one with an empty id for a
	// value.
	Items Items
	// Load returns the payload of item i. The bytes must not be changed.
	Load func(i int) ([]byte, error)
}

// All returns the port's items with their payloads, in order, until one can't be had.
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

// A Member is an item of an input port that belongs to an item of the call.
type Member struct {
	Item
	Data []byte
}

// A Call is one item of an itemwise call and what belongs to it. One made of a source has the source's id
// and, if that is a file, the digest of it and its note. One of a Group stage has the origin as its id and
// the digest of the first member.
type Call struct {
	Item               // of the first item port; see below for what has none
	Source  *Source    // when the stage has Sources
	Members [][]Member // by input port, in the order of Stage.Inputs; nil for unwired ports and for values
}

// An Output is a payload that a stage put on a port.
type Output struct {
	Port   string
	Call   int    // itemwise: index of the call's item
	ID     string // Expand: what to append to the item's id; Whole: the item's id, "" for a value
	Origin string // Whole, items: the item's origin, "" for ID
	Data   []byte
}

// A Beside is a cell that runs on the same calls as another one.
type Beside struct {
	Stage  *Stage
	Params any
}

// Env is what a running stage sees. Its methods may be called by one goroutine at a time.
type Env struct {
	// Stage is the running stage.
	Stage *Stage
	// Slot is where to compute.
	Slot Slot
	// Batch is how many items or forward passes to hand to the device at once. It must not influence any
	// output.
	Batch int
	// Calls are the items of an itemwise call.
	Calls []Call
	// Ports holds, by input port, what the upstream cells hand over: of every port for a Whole stage, of
	// value ports for the others. An itemwise stage finds the Facts of its item ports here too.
	Ports map[string][]Data
	// Order is the order of the ids of the collapsed axes, of an Ordered stage.
	Order Order
	// Read are the sources of a Whole stage.
	Read []Source
	// Beside are the cells that will run on the same calls next, on this slot; see [Def.Together].
	Beside []Beside
	// Seed is the experiment's seed, 0 unless the stage is Seeded.
	Seed uint64
	// OnWarn, if set, gets warnings for the user.
	OnWarn func(Warning)
	// OnDone, if set, is told how many more items are finished.
	OnDone func(n int)

	// Outputs and OutFacts collect the results.
	Outputs  []Output
	OutFacts map[string]Facts
}

// Len returns the number of items of an itemwise call.
func (e *Env) Len() int { return len(e.Calls) }

// Wired reports whether an input port is connected.
func (e *Env) Wired(port string) bool { return len(e.Ports[port]) > 0 }

// In returns the payload of item i on an input port of items, nil if the port isn't wired. The bytes must not
// be changed.
func (e *Env) In(port string, i int) []byte {
	m := e.Members(port, i)
	if len(m) == 0 {
		return nil
	}
	return m[0].Data
}

// Members returns, for a Group stage, all items of a port that have the origin of call i; for the others the
// single item that belongs to it.
func (e *Env) Members(port string, i int) []Member {
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

// Value returns the payload of a port that carries one value, nil if the port isn't wired.
func (e *Env) Value(port string) ([]byte, error) {
	d := e.Ports[port]
	if len(d) == 0 {
		return nil, nil
	}
	return d[0].Load(0)
}

// ValueDigest returns the digest of the payload of a port that carries one value.
func (e *Env) ValueDigest(port string) Digest {
	if d := e.Ports[port]; len(d) > 0 && d[0].Items != nil && d[0].Items.Len() > 0 {
		if item, err := d[0].Items.At(0); err == nil { // a value's is at hand
			return item.Digest
		}
	}
	return Digest{}
}

// Facts returns the facts of an input port, of the first cell if axes are collapsed.
func (e *Env) Facts(port string) Facts {
	if d := e.Ports[port]; len(d) > 0 {
		return d[0].Facts
	}
	return nil
}

// Put hands over the result of item i. Each and Group stages put exactly one payload on every output port for
// every item.
func (e *Env) Put(port string, i int, payload []byte) {
	e.Outputs = append(e.Outputs, Output{Port: port, Call: i, Data: payload})
}

// Add hands over one of several results of item i of an Expand stage. Its id will be the item's id, a slash
// and sub.
func (e *Env) Add(port string, i int, sub string, payload []byte) {
	e.Outputs = append(e.Outputs, Output{Port: port, Call: i, ID: sub, Data: payload})
}

// Emit hands over an item of a Whole stage, in order.
func (e *Env) Emit(port, id, origin string, payload []byte) {
	e.Outputs = append(e.Outputs, Output{Port: port, ID: id, Origin: origin, Data: payload})
}

// Set hands over the value of an output port of a Whole stage.
func (e *Env) Set(port string, payload []byte) { e.Emit(port, "", "", payload) }

// SetFacts states the facts of an output port of a Whole stage.
func (e *Env) SetFacts(port string, f Facts) {
	if e.OutFacts == nil {
		e.OutFacts = map[string]Facts{}
	}
	e.OutFacts[port] = f
}

// A Warning tells the user something that isn't an error. Of a cell's warnings that have one reason the user
// gets one, with their number.
type Warning struct {
	Reason string // what they have in common; isn't shown
	Text   string
	Item   string // the id of the item that it is about, "" for none
}

func (w Warning) String() string {
	if w.Item == "" {
		return w.Text
	}
	return fmt.Sprintf("item %q: %s", w.Item, w.Text)
}

// Warn tells the user something that isn't an error. The format is the reason.
func (e *Env) Warn(format string, args ...any) {
	if e.OnWarn != nil {
		e.OnWarn(Warning{Reason: format, Text: fmt.Sprintf(format, args...)})
	}
}

// WarnItem does the same of item i.
func (e *Env) WarnItem(i int, format string, args ...any) {
	if e.OnWarn != nil {
		e.OnWarn(Warning{Reason: format, Text: fmt.Sprintf(format, args...), Item: e.Calls[i].ID})
	}
}

// Done tells that n more items are finished, for the progress display.
func (e *Env) Done(n int) {
	if e.OnDone != nil {
		e.OnDone(n)
	}
}

// Rand returns a generator for one purpose and the item i of the call. It depends on the seed, the stage's
// name, the purpose and the item's payload digest (for a source its file and note), and on nothing else.
func (e *Env) Rand(purpose string, i int) *rand.Rand {
	c := &e.Calls[i]
	d := c.Digest
	if d == (Digest{}) && c.Source != nil {
		d = Sum([]byte(c.Source.Note))
	}
	return e.rand(purpose, d[:])
}

// SharedRand returns a generator for one purpose that all items share.
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
