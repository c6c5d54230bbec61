// Package program has nets, their programs, and the programs' cache on slots.
//
// The path of the data. [Load] returns the [Net] of the model on a stage's port. A method of the net,
// [Net.Forward] or [Net.Gradient] say, states a [lower.Request]; [lower.Program] makes the ONNX model of it,
// for a batch that [Net.Fit] chooses; the slot keeps the loaded session, and the buffers of its inputs and
// outputs. The stage writes inputs row by row, runs the program and reads outputs row by row. Where nothing
// is to run, a [Rehearsal] is the slot: it makes the same programs, and [Stage] has their digest in the keys
// of stages.
//
// target_nodes.go emits targets as nodes of a file.
//
// Files in that order: net, batch, pace; forward, curve, masked, values, gradient, anatomy, path,
// tangent, deeplift, attention, audit; program, need, buffers; digest, rehearsal. expression.go and target.go
// say which class is explained, text.go runs texts by their lengths, layer.go finds layers by their names,
// layer_removed.go those that simplification removed, and input_bounds.go has black and white at the input.
// probe.go runs a model of which nothing is known yet, usage.go measures how programs use a device. file.go
// writes a net for other programs, and lowers those that become part of a file. head.go makes the net that
// explains an expression.
//
// Programs work in the model's normalised space: images [C,H,W] as [modelfile.Spec.Normalise] makes them,
// channels in the order red, green, blue. They return the model's answer, logits or probabilities;
// probabilities are computed from logits in float64, so that they are the same function of these on every
// device.
//
// A program is compiled for a fixed batch and a short batch is padded, because libraries choose their kernels
// by the shape. No row of a batch influences another: see the pass batch_invariant of package lower.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/ort"
)

// A loaded program is on a device, for all slots there that have one thread each; it has no buffers.
type loaded struct {
	signature      lower.Signature
	batch, classes int
	need           lower.Need
	session        *ort.Session  // nil in a rehearsal
	runtime        *ort.Runtime  // of the session
	digest         stages.Digest // if the slot records it
	reference      *loaded       // of a comparison
	fallsBack      bool          // the processor computes some of it in the device's place
	weight         int64         // bytes on a device, between runs too; 0 on a processor
}

// Weight implements [stages.Weighed]. A session keeps its weights on a device, its inputs, and an arena as
// large as a run needed: neither provider gives that back. What kernels take for themselves in addition
// isn't known, nor what a file that runs verbatim makes between its ends.
func (l *loaded) Weight() int64 {
	if l == nil {
		return 0
	}
	return l.weight + l.reference.Weight()
}

// open loads a program for a slot.
func (n *Net) open(ctx context.Context, slot stages.Slot, p *lower.Lowered) (l *loaded, err error) {
	if _, ok := slot.(*Rehearsal); ok {
		l = &loaded{signature: p.Signature, batch: p.Batch, classes: n.Classes}
	} else if l, err = n.load(ctx, slot, p); err != nil {
		return nil, err
	}
	if recorderOf(slot) != nil {
		l.digest = digestOf(p)
	}
	if p.Reference != nil {
		if l.reference, err = n.open(ctx, slot, p.Reference); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// load loads a program onto a slot's device.
func (n *Net) load(ctx context.Context, slot stages.Slot, p *lower.Lowered) (*loaded, error) {
	l := &loaded{signature: p.Signature, batch: p.Batch, classes: n.Classes}
	d := slot.Device()
	d.Precision, d.Backward = n.precision, p.Signature.Backward > 0
	need := lower.Need{}
	if d.Class == "cpu" { // other devices have memory of their own, and say when that is short
		var err error
		if need, err = n.need(ctx, slot, p); err != nil {
			return nil, err
		}
		need.Run += l.memory()
		l.need = need
	}
	b, err := p.Model.Encode()
	if err != nil {
		return nil, err
	}
	if d.Class != "cpu" {
		l.weight = int64(len(b)) + l.memory()
		if p.Graph != nil {
			l.weight += lower.NeedOf(p.Graph).Run
		}
	}
	needs := ort.Needs{Run: need.Run, Kept: need.Kept}
	sure, err := ort.Surely(needs)
	if err != nil {
		return nil, err
	}
	runtime, err := ort.For(n.digest, sure && !need.Hidden)
	if err != nil {
		return nil, err
	}
	runtime = runtime.Needing(needs)
	with := runtime
	if d.Class != "cpu" {
		with = runtime.Alone()
	}
	s, err := session(with, p, b, d)
	if ort.FallsBack(err) {
		l.fallsBack = true
		s, err = session(runtime, p, b, d)
	}
	if err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	l.session, l.runtime = s, runtime
	if m, ok := slot.(stages.Meter); ok {
		m.Compiled(1, 0)
	}
	return l, nil
}

// session loads a program, encoded as model, onto a device.
func session(r *ort.Runtime, p *lower.Lowered, model []byte, d stages.Device) (*ort.Session, error) {
	load := r.NewSession
	if p.Canonical {
		load = r.NewCanonicalSession
	}
	var inputs []string
	for _, v := range p.Inputs {
		inputs = append(inputs, v.Value())
	}
	outputs := []string{lower.Answer}
	for _, v := range p.Outputs {
		outputs = append(outputs, v.Value())
	}
	return load(model, inputs, outputs, d, p.Disabled...)
}

// carried reports whether the program's inputs and outputs cross a bus.
func (l *loaded) carried() bool { return l.session != nil && l.session.Carried() }

// memory returns the bytes of the program's buffers.
func (l *loaded) memory() int64 {
	if l == nil {
		return 0
	}
	numbers := l.batch * l.classes
	for _, v := range slices.Concat(l.signature.Inputs, l.signature.Outputs) {
		numbers += onnx.Size(v.Shape)
	}
	return 4*int64(numbers) + l.reference.memory()
}

// Close unloads the program.
func (l *loaded) Close() error {
	if l == nil || l.session == nil {
		return nil
	}
	return errors.Join(l.session.Close(), l.runtime.Close(), l.reference.Close())
}

// A Program is a loaded program with its buffers.
type Program struct {
	*loaded
	Batch   int
	binding *ort.Binding // of the loaded program to the buffers; nil in a rehearsal
	inputs  []*ort.Tensor[float32]
	answer  *ort.Tensor[float32]
	outputs []*ort.Tensor[float32] // in addition to the model's output
	own     []*ort.Tensor[float32] // all of these but the reference's

	// reference is the program that a comparison's inputs from the third on are buffers of; ready says that
	// it has run on its own input.
	reference *Program
	ready     bool

	net       *Net
	meter     stages.Meter  // the slot, if it counts passes
	first     time.Duration // of its first run, until the second shows what of that was compiling
	rows      int           // that were written for a run, from the first: see [Program.write]
	over      bool          // that run is over: what is written now is for the next
	rehearsal *Rehearsal    // instead of a session
	act, ran  int           // of the rehearsal when it last ran, and how often in it
}

// cached returns the program called key on a slot. It is lowered and loaded when no slot of the device has
// it; weight is the memory that it then takes, in bytes, while it doesn't run.
func (n *Net) cached(ctx context.Context, slot stages.Slot, key string, batch int, weight int64,
	r lower.Request) (_ *Program, err error) {
	if batch, err = n.paced(ctx, slot, key, batch, r); err != nil {
		return nil, err
	}
	if batch, err = n.inPrecision(slot, batch); err != nil {
		return nil, err
	}
	if n.precision != "" {
		key = n.precision + " " + key
	}
	name := key
	key = fmt.Sprintf("program %s, batch %d of %s", name, batch, n.digest)
	defer func() { err = n.short(err, batch) }()
	c, err := keeper(slot)(key, weight, func() (io.Closer, error) {
		p, err := n.compile(ctx, slot, batch, r)
		if err != nil {
			return nil, err
		}
		l, err := n.open(ctx, slot, p)
		if err != nil {
			return nil, err
		}
		if err := n.watch(ctx, slot, name, p, l.fallsBack); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	l := c.(*loaded)
	memory := "memory of "
	if l.carried() {
		memory = "memory next to a device of "
	}
	c, err = slot.Keep(memory+key, l.memory(), func() (io.Closer, error) { return allocate(l) })
	if err != nil {
		return nil, err
	}
	p := c.(*Program)
	return p, p.on(n, slot, l)
}

// inPrecision returns the batch of a program in the net's precision, or the error of a device without it.
func (n *Net) inPrecision(slot stages.Slot, batch int) (int, error) {
	if _, ok := slot.(*Rehearsal); ok { // its programs are those of every class
		return batch, nil
	}
	p, err := ort.ProviderOf(slot.Device().Class).In(n.precision)
	switch {
	case err != nil || p == nil:
		return batch, err
	case n.Text != nil && p.RoundsInputs:
		return 0, &ort.NoDevice{
			Reason: fmt.Sprintf("%s rounds the ids of tokens in %s", slot.Device().Class, n.precision),
			Remedy: "precision: float32 for texts"}
	case p.Batch == 0 || n.Batch > 0:
		return batch, nil
	}
	return p.Batch, nil
}

// kernels returns those that compute the net's programs on a slot. A rehearsal's programs are the same in
// every precision, as those in keys are.
func (n *Net) kernels(slot stages.Slot) ort.Kernels {
	p := ort.ProviderOf(slot.Device().Class)
	if _, ok := slot.(*Rehearsal); ok {
		return p.Kernels
	}
	return p.KernelsIn(n.precision)
}

// compile lowers a program of the net.
func (n *Net) compile(ctx context.Context, slot stages.Slot, batch int, r lower.Request) (*lower.Lowered,
	error) {
	r.Kernels = n.kernels(slot)
	return lower.Program(ctx,
		n.source(func(batch int) (*onnx.Graph, error) { return n.Graph(ctx, slot, batch) }), batch, r)
}

// keeper returns how a slot keeps loaded programs: for other slots as well, unless it has several threads.
// Slots would share these as well, since they are the session's. A rehearsal has its own.
func keeper(slot stages.Slot) func(string, int64, func() (io.Closer, error)) (io.Closer, error) {
	_, rehearsed := slot.(*Rehearsal)
	if d := slot.Device(); rehearsed || d.Class == "cpu" && d.Threads > 1 {
		return slot.Keep
	}
	return slot.Share
}

// allocate returns a program with buffers.
func allocate(l *loaded) (p *Program, err error) {
	runtime, err := ort.Default()
	if err != nil {
		return nil, err
	}
	p = &Program{loaded: l, Batch: l.batch}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if l.reference != nil {
		if p.reference, err = allocate(l.reference); err != nil {
			return nil, err
		}
	}
	buffer := func(shape ...int) *ort.Tensor[float32] {
		t, failed := ort.NewTensor[float32](runtime, shape...)
		if err = errors.Join(err, failed); failed == nil {
			p.own = append(p.own, t)
		}
		return t
	}
	for _, v := range l.signature.Inputs {
		t := p.reference.buffer(v.Name)
		if t == nil {
			t = buffer(v.Shape...)
		}
		p.inputs = append(p.inputs, t)
	}
	for _, v := range l.signature.Outputs {
		if l.carried() && slices.Contains(l.signature.Echoes, v.Name) {
			p.outputs = append(p.outputs, p.inputs[p.input("images")]) // needn't come back
		} else {
			p.outputs = append(p.outputs, buffer(v.Shape...))
		}
	}
	p.answer = buffer(l.batch, l.classes)
	return p, err
}

// on sets what runs when the program runs on a slot: the loaded program that its buffers were made for, which
// may have been closed since and loaded again.
func (p *Program) on(n *Net, slot stages.Slot, l *loaded) error {
	if p.reference != nil {
		if err := p.reference.on(n, slot, l.reference); err != nil {
			return err
		}
	}
	p.net = n
	p.rehearsal, _ = slot.(*Rehearsal)
	p.meter, _ = slot.(stages.Meter)
	if r := recorderOf(slot); r != nil {
		r.Record(l.digest)
	}
	if p.loaded == l && p.binding != nil || l.session == nil {
		p.loaded = l
		return nil
	}
	err := p.unbind()
	p.loaded, p.first = l, 0
	return errors.Join(err, p.bind())
}

// bind binds the loaded program to the buffers.
func (p *Program) bind() (err error) {
	in := make([]ort.Value, len(p.inputs))
	for i, t := range p.inputs {
		in[i] = t
	}
	out := []ort.Value{p.answer}
	for _, t := range p.outputs {
		if slices.Contains(p.inputs, t) {
			out = append(out, nil)
		} else {
			out = append(out, t)
		}
	}
	p.binding, err = p.session.Bind(in, out)
	return p.net.short(err, p.Batch)
}

func (p *Program) unbind() error {
	if p.binding == nil {
		return nil
	}
	b := p.binding
	p.binding = nil
	return b.Close()
}

// run runs the program on its inputs.
func (p *Program) run(ctx context.Context) error {
	if p.rehearsal != nil {
		return p.rehearsal.run(p)
	}
	p.over = true
	if p.meter != nil {
		rows := cmp.Or(p.rows, p.batch)
		p.meter.Passed(rows, rows*p.signature.Backward)
	}
	err := p.binding.Run(ctx)
	if err == nil && p.meter != nil {
		p.settle()
	}
	return p.net.short(err, p.Batch)
}

// settle counts as compiling what a first run took longer than the second: libraries choose kernels and
// compile shaders in it.
func (p *Program) settle() {
	const known = -1
	switch {
	case p.first == 0:
		p.first = p.binding.Took
	case p.first > p.binding.Took:
		p.meter.Compiled(0, p.first-p.binding.Took)
		p.first = known
	default:
		p.first = known
	}
}

// Close frees the program's buffers.
func (p *Program) Close() error {
	errs := []error{p.unbind()}
	for _, t := range p.own {
		errs = append(errs, t.Close())
	}
	if p.reference != nil {
		errs = append(errs, p.reference.Close())
	}
	return errors.Join(errs...)
}
