// Package program makes programs of models: the model's ONNX graph between nodes
// of ours, which make its input of what a stage varies, compiled for one batch
// size and kept loaded on a device.
//
// Programs work in the model's normalised space: images [C,H,W] as
// [modelfile.Spec.Normalise] makes them, channels in the order red, green, blue.
// They return what the model does, logits or probabilities; probabilities are computed
// from logits in float64, so that they are the same function of these on every device.
//
// A program is compiled for a fixed batch and a short batch is filled up, because
// libraries choose their kernels by the shape. No row of a batch influences another, and
// operators whose last bits would hang on the batch are written in others: see [unsteady].
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/ort"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// A Net is a model that programs can be made of.
type Net struct {
	modelfile.Spec
	digest stages.Digest
	size   int64 // of its ONNX file
	onnx   func() ([]byte, error)
}

// Load returns the model on the port called model. Once it has been seen on the slot,
// its bytes are loaded only to compile another program of it.
func Load(e *stages.Env) (*Net, error) {
	load := sync.OnceValues(func() (modelfile.Model, error) {
		b, err := e.Value("model")
		if err != nil {
			return modelfile.Model{}, err
		}
		m, err := modelfile.Decode(b)
		if err != nil {
			return m, fmt.Errorf("port model: %w", err)
		}
		return m, nil
	})
	digest := e.ValueDigest("model")
	c, err := e.Slot.Share("model "+digest.String(), 0, func() (io.Closer, error) {
		m, err := load()
		return &seen{m.Spec, int64(len(m.ONNX))}, err
	})
	if err != nil {
		return nil, err
	}
	s := c.(*seen)
	return &Net{s.Spec, digest, s.size, func() ([]byte, error) {
		m, err := load()
		return m.ONNX, err
	}}, nil
}

// seen is what slots keep of a model: all but its bytes.
type seen struct {
	modelfile.Spec
	size int64
}

func (*seen) Close() error { return nil }

// NewNet returns the net of a model that is not on a port.
func NewNet(m modelfile.Model) (*Net, error) {
	b, err := m.Encode()
	n := netOf(m)
	n.digest = stages.Sum(b)
	return n, err
}

// netOf returns the net of a model of which no slot keeps anything.
func netOf(m modelfile.Model) *Net {
	return &Net{Spec: m.Spec, size: int64(len(m.ONNX)), onnx: func() ([]byte, error) { return m.ONNX, nil }}
}

// Digest returns the digest of the model.
func (n *Net) Digest() stages.Digest { return n.digest }

// Fit returns the batch to compile for when so many rows are wanted and at most limit
// fit: the one that takes the least time, if a run takes as long as its rows, those of the
// last one that are unused too, and one more. It is two at least where the model takes as
// many: some of ONNX Runtime's kernels add up in another order where a dimension is 1,
// so that a single row would have other bits.
func (n *Net) Fit(rows, limit int) int {
	if n.Batch > 0 {
		return n.Batch
	}
	rows = max(2, rows)
	best := min(rows, max(2, limit))
	cost := func(batch int) int { return (rows + batch - 1) / batch * (batch + 1) }
	for batch := best - 1; batch >= 2; batch-- {
		if cost(batch) < cost(best) {
			best = batch
		}
	}
	return best
}

// A feed is an input of a program.
type feed struct {
	name  string
	shape []int
}

// A recipe is a way to make a program of a net.
type recipe struct {
	feeds []feed
	// returns are what the program returns besides the answer.
	returns []feed
	// entries are the accounts that the last of these sums up, if it keeps any.
	entries []relevance.Entry
	// canonical says that the net's own nodes give the same bits in all programs
	// of a batch whose recipes say so.
	canonical bool
	// emit adds the nodes that make normalised images [batch,C,H,W] of the feeds,
	// and returns the name of the value that holds them.
	emit func(f *onnx.Fragment) string
}

// parse reads the net's ONNX file, and has it whole and in order.
func (n *Net) parse() (*onnx.Model, error) {
	b, err := n.onnx()
	if err != nil {
		return nil, err
	}
	m, err := onnx.Parse(b)
	if err != nil {
		return nil, err
	}
	if m.Fresh(answer) != answer {
		return nil, fmt.Errorf("the model already has a value called %q", answer)
	}
	rewrite.StateKernels(m)
	return m, rewrite.Order(m)
}

const answer = "runexp_answer"

// compile returns the model of a program.
func (n *Net) compile(r recipe) (*onnx.Model, error) {
	m, err := n.parse()
	if err != nil {
		return nil, err
	}
	elem := onnxpb.TensorProto_FLOAT
	for _, v := range m.Inputs() {
		if v.Name == n.Input {
			elem = v.Elem
		}
	}
	inputs := make([]onnx.Value, len(r.feeds))
	for i, f := range r.feeds {
		inputs[i] = onnx.Value{Name: m.Fresh("runexp_" + f.name), Elem: onnxpb.TensorProto_FLOAT, Shape: f.shape, Known: true}
		if inputs[i].Name != "runexp_"+f.name {
			return nil, fmt.Errorf("the model already has a value called %q", "runexp_"+f.name)
		}
	}
	before := m.Fragment()
	n.enter(before, r.emit(before), elem)
	m.Before(before)
	// Casts of a value to its own type vanish when ORT loads the program. The
	// reshape drops the dimensions of size 1 that some heads have; without a known
	// number of classes there is none.
	after := m.Fragment()
	single := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}
	if n.Classes == 0 {
		after.OpTo(answer, "Cast", []string{n.Output}, single)
	} else {
		shape := after.Ints("classes", []int64{-1, int64(n.Classes)}, 2)
		after.OpTo(answer, "Reshape", []string{after.Op("Cast", []string{n.Output}, single), shape})
	}
	m.After(after)
	m.SetInputs(inputs...)
	m.SetOutputs(onnx.Value{Name: answer, Elem: onnxpb.TensorProto_FLOAT})
	m.ForgetShapes()
	m.Prune()
	return m, spare(m)
}

// enter emits what makes the model's input of normalised images.
func (n *Net) enter(f *onnx.Fragment, x string, elem onnxpb.TensorProto_DataType) {
	if n.Order == modelfile.BGR {
		x = bgr(f, x)
	}
	if n.Layout == modelfile.NHWC {
		x = f.Op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 3, 1}})
	}
	f.OpTo(n.Input, "Cast", []string{x}, onnx.Attr{Name: "to", Value: int(elem)})
}

// bgr emits the exchange of the first channel with the third.
func bgr(f *onnx.Fragment, x string) string {
	return f.Op("Gather", []string{x, f.Ints("bgr", []int64{2, 1, 0}, 3)}, onnx.Attr{Name: "axis", Value: 1})
}

// A loaded program is on a device, for all slots there that have one thread each: it has
// no memory of what it is fed and returns.
type loaded struct {
	recipe         recipe
	batch, classes int
	session        *ort.Session  // nil in a rehearsal
	runtime        *ort.Runtime  // of the session
	digest         stages.Digest // if the slot records it
}

// open returns the program of a recipe for a slot, given its model.
func (n *Net) open(m *onnx.Model, batch int, r recipe, slot stages.Slot) (l *loaded, err error) {
	if _, ok := slot.(*Rehearsal); ok {
		l = &loaded{recipe: r, batch: batch, classes: n.Classes}
	} else if l, err = n.load(m, batch, r, slot.Device()); err != nil {
		return nil, err
	}
	if recorderOf(slot) != nil {
		l.digest = digestOf(m, r)
	}
	return l, nil
}

// load returns the program on a device.
func (n *Net) load(m *onnx.Model, batch int, r recipe, d stages.Device) (*loaded, error) {
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	runtime, err := ort.For(n.digest)
	if err != nil {
		return nil, err
	}
	session := runtime.NewSession
	if r.canonical {
		session = runtime.NewCanonicalSession
	}
	var inputs []string
	for _, f := range r.feeds {
		inputs = append(inputs, "runexp_"+f.name)
	}
	outputs := []string{answer}
	for _, f := range r.returns {
		outputs = append(outputs, "runexp_"+f.name)
	}
	s, err := session(b, inputs, outputs, d, misfused(m.Proto)...)
	if err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	return &loaded{recipe: r, batch: batch, classes: n.Classes, session: s, runtime: runtime}, nil
}

// memory returns the bytes of what the program is fed and returns.
func (l *loaded) memory() int64 {
	numbers := l.batch * l.classes
	for _, f := range slices.Concat(l.recipe.feeds, l.recipe.returns) {
		numbers += size(f.shape)
	}
	return 4 * int64(numbers)
}

// Close unloads the program.
func (l *loaded) Close() error {
	if l.session == nil {
		return nil
	}
	return errors.Join(l.session.Close(), l.runtime.Close())
}

// A Program is a compiled program on a device, with the memory of what it is fed
// and returns.
type Program struct {
	*loaded
	Batch    int
	feeds    []*ort.Tensor[float32]
	answer   *ort.Tensor[float32]
	fed      []string               // the names of the feeds
	returned []*ort.Tensor[float32] // what the recipe returns besides
	names    []string               // of these
	shapes   [][]int                // of these

	rehearsal *Rehearsal // in the place of a session
	act, ran  int        // of the rehearsal when it last ran, and how often in it
}

// keep returns the program called key on a slot. make makes its model, for the batch,
// when no slot of the device has it loaded. weight is what it takes there, in bytes, as
// long as it doesn't run.
func (n *Net) keep(slot stages.Slot, key string, batch int, weight int64, make func() (*onnx.Model, recipe, error)) (*Program, error) {
	key = fmt.Sprintf("program %s, batch %d of %s", key, batch, n.digest)
	c, err := sharing(slot)(key, weight, func() (io.Closer, error) {
		m, r, err := make()
		if err != nil {
			return nil, err
		}
		return n.open(m, batch, r, slot)
	})
	if err != nil {
		return nil, err
	}
	l := c.(*loaded)
	c, err = slot.Keep("memory of "+key, l.memory(), func() (io.Closer, error) { return allocate(l) })
	if err != nil {
		return nil, err
	}
	p := c.(*Program)
	p.on(slot, l)
	return p, nil
}

// sharing returns how a slot keeps loaded programs: with others, but for those that have
// several threads. Slots would have to share these as well, since they are the session's.
// A rehearsal's are its own.
func sharing(slot stages.Slot) func(string, int64, func() (io.Closer, error)) (io.Closer, error) {
	_, rehearsed := slot.(*Rehearsal)
	if d := slot.Device(); rehearsed || d.Class == "cpu" && d.Threads > 1 {
		return slot.Keep
	}
	return slot.Share
}

// allocate returns a program with the memory of what it is fed and returns.
func allocate(l *loaded) (*Program, error) {
	runtime, err := ort.Default()
	if err != nil {
		return nil, err
	}
	p := &Program{loaded: l, Batch: l.batch}
	for _, f := range l.recipe.returns {
		t, err := ort.NewTensor[float32](runtime, f.shape...)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.returned = append(p.returned, t)
		p.names, p.shapes = append(p.names, f.name), append(p.shapes, f.shape)
	}
	for _, f := range l.recipe.feeds {
		t, err := ort.NewTensor[float32](runtime, f.shape...)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.feeds, p.fed = append(p.feeds, t), append(p.fed, f.name)
	}
	if p.answer, err = ort.NewTensor[float32](runtime, l.batch, l.classes); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// on says what runs when the program runs on a slot: the same as what its memory was made
// for, but that may have been closed since, and loaded again.
func (p *Program) on(slot stages.Slot, l *loaded) {
	p.loaded = l
	p.rehearsal, _ = slot.(*Rehearsal)
	if r := recorderOf(slot); r != nil {
		r.Record(l.digest)
	}
}

// run runs the program on what its feeds hold.
func (p *Program) run(ctx context.Context) error {
	if p.rehearsal != nil {
		return p.rehearsal.run(p)
	}
	in := make([]ort.Value, len(p.feeds))
	for i, t := range p.feeds {
		in[i] = t
	}
	out := []ort.Value{p.answer}
	for _, t := range p.returned {
		out = append(out, t)
	}
	return p.session.Run(ctx, in, out)
}

// Row returns the model's answer to row i of the last run. It is overwritten by
// the next.
func (p *Program) Row(i int) []float32 { return p.answer.Data[i*p.classes : (i+1)*p.classes] }

// row returns row i of feed number f.
func (p *Program) row(f, i int) []float32 {
	d := p.feeds[f].Data
	size := len(d) / p.Batch
	return d[i*size : (i+1)*size]
}

// Close frees the program's memory.
func (p *Program) Close() error {
	var errs []error
	for _, t := range append(p.feeds, p.returned...) {
		errs = append(errs, t.Close())
	}
	if p.answer != nil {
		errs = append(errs, p.answer.Close())
	}
	return errors.Join(errs...)
}
