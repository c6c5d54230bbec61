package program

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/target"
)

// A Rehearsal is a slot on a CPU where programs are compiled and none is loaded: a stage gets the errors
// there that it would get on a device, in a fraction of the time. A program returns zeros the first times
// that it runs, and then [ErrRehearsed].
type Rehearsal struct {
	// Base, if set, keeps what isn't a program: the net's specification and its graph.
	Base stages.Slot
	// Pretend has programs return numbers drawn from their inputs instead of zeros, as often as they run: for
	// tests of how stages use them.
	Pretend bool

	// Usages are those of all programs that were made, of a rehearsal by [Measuring].
	Usages []Usage

	kept map[string]io.Closer
	act  int
	on   *stages.Device // on which programs are measured

	// exact says that every pass runs that can change the bits of a program, and that programs are digested;
	// otherwise passes that return no errors are left out.
	exact    bool
	recorded []stages.Digest
}

// ErrRehearsed says that a program ran often enough: further runs would test nothing new.
var ErrRehearsed = errors.New("the program ran often enough")

// enough is how often a program runs that takes two items one by one, and their reference.
const enough = 3

// Measuring returns a rehearsal that measures on a device how each program uses it.
func Measuring(d stages.Device, base stages.Slot) *Rehearsal {
	return &Rehearsal{Base: base, on: &d, exact: true}
}

// Device returns the processor, and one thread of it, or the device that programs are measured on.
func (r *Rehearsal) Device() stages.Device {
	if r.on != nil {
		return *r.on
	}
	return stages.Device{Class: "cpu", Threads: 1}
}

// Keep keeps everything until Close.
func (r *Rehearsal) Keep(key string, _ int64, make func() (io.Closer, error)) (io.Closer, error) {
	if c, ok := r.kept[key]; ok {
		return c, nil
	}
	c, err := make()
	if err != nil {
		return nil, err
	}
	if r.kept == nil {
		r.kept = map[string]io.Closer{}
	}
	r.kept[key] = c
	return c, nil
}

// Share does the same, or has Base do so.
func (r *Rehearsal) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	if r.Base != nil {
		return r.Base.Share(key, weight, make)
	}
	return r.Keep(key, weight, make)
}

// Record implements [Recorder].
func (r *Rehearsal) Record(d stages.Digest) { r.recorded = append(r.recorded, d) }

// A Subject is the model that stages are rehearsed on: its specification, and the value itself.
type Subject struct {
	Spec  modelfile.Spec
	Model stages.Data
	Texts stages.Facts // those of the texts that it is to run on, nil if they aren't known

	// Long has texts be as long as the model takes them; usually they are short.
	Long bool
}

// rehearsed is the number of items of a rehearsal, all of them in a batch: the shapes of a graph for two tell
// which axis is the batch. A Whole stage gets more, since it may need several for one result.
const (
	rehearsed      = 2
	rehearsedWhole = 64
	// measured is the number of items, and the batch, where programs are measured: as much as any GPU has
	// memory for.
	measured = 8
)

// ErrNoPart says that a stage can't be rehearsed: it has no port for models, or one of a type without blank
// items, or reads sources, which blank items lack.
var ErrNoPart = errors.New("the stage can't be rehearsed")

// Rehearse runs a stage with these parameters without running the model, and returns its error. Its items are
// blank: images of the model's size, ranks of their pixels, and any class. wired reports which of its
// optional ports are connected.
func (r *Rehearsal) Rehearse(ctx context.Context, s *stages.Stage, params any, on Subject,
	wired func(port string) bool) error {
	r.act++
	var err error
	// One of the labels may be the class that the stage compares with.
	for _, label := range []int{max(1, on.Spec.Classes) - 1, 0} {
		var e *stages.Env
		if e, err = r.blankEnv(s, on, label, wired); err != nil {
			return err
		}
		if err = runBlank(ctx, s, params, e); !errors.Is(err, ErrSameClass) {
			break
		}
	}
	// The answers of a model that doesn't run are zeros, whose cosine is undefined.
	if errors.Is(err, ErrRehearsed) || errors.Is(err, ErrSameClass) || errors.Is(err, target.ErrUndefined) {
		return nil
	}
	return err
}

func runBlank(ctx context.Context, s *stages.Stage, params any, e *stages.Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is a bug in %s: %v", s.Name, p)
		}
	}()
	return s.Run(ctx, params, e)
}

// blankEnv returns the environment of a stage in a rehearsal.
func (r *Rehearsal) blankEnv(s *stages.Stage, on Subject, label int,
	wired func(port string) bool) (*stages.Env, error) {
	rows := rehearsed
	if r.on != nil {
		rows = measured
	}
	e := &stages.Env{Stage: s, Slot: r, Batch: rows, Calls: make([]stages.Call, rows),
		Ports: map[string][]stages.Data{}}
	for i := range e.Calls {
		e.Calls[i].ID = fmt.Sprintf("blank %d", i)
	}
	if s.Sources != nil {
		return nil, ErrNoPart
	}
	for _, port := range s.Inputs {
		var members []stages.Member
		if wired(port.Name) || !port.Optional || port.Else != "" {
			if port.Type == stages.Model {
				e.Ports[port.Name] = []stages.Data{on.Model}
			} else {
				payload, err := on.blank(r, port.Type, label)
				if err != nil {
					return nil, err
				}
				item := stages.Item{ID: "blank", Origin: "blank"}
				members = []stages.Member{{Item: item, Data: payload}}
				items := stages.ItemSlice{item}
				if s.Relation == stages.Whole {
					items = slices.Repeat(items, rehearsedWhole)
				}
				e.Ports[port.Name] = []stages.Data{{Items: items, Facts: on.facts(port.Type),
					Load: func(int) ([]byte, error) { return payload, nil }}}
			}
		}
		for i := range e.Calls {
			e.Calls[i].Members = append(e.Calls[i].Members, members)
		}
	}
	if !slices.ContainsFunc(s.Inputs,
		func(p stages.Port) bool { return p.Type == stages.Model && e.Wired(p.Name) }) {
		return nil, ErrNoPart
	}
	return e, nil
}

// facts returns the facts of blank items: texts whose facts aren't known have a token that fills up and one
// that hides, and labels have any class, since their data set says only when it runs what its classes are
// called.
func (on Subject) facts(of stages.Type) stages.Facts {
	switch {
	case of == stages.Labels:
		return stages.Facts{"labels": AnyNames}
	case of == stages.Images && on.Texts != nil:
		return on.Texts
	case of == stages.Images && on.Spec.Text != nil:
		return stages.Facts{"pad": "0", "mask": "0"}
	}
	return nil
}

// blank returns the payload of a blank item, or [ErrNoPart].
func (on Subject) blank(slot stages.Slot, of stages.Type, label int) ([]byte, error) {
	if of == stages.Targets {
		n, err := LoadNet(slot, on.Model)
		if err != nil {
			return nil, err
		}
		if n.Head != nil {
			return Target{Frozen: make([]float32, n.Head.Width())}.Payload(), nil
		}
	}
	if b, ok := on.blankOf(of, label); ok {
		return b, nil
	}
	return nil, ErrNoPart
}

// blankOf returns the payload of a blank item of a type that needs no more than the model's specification.
func (on Subject) blankOf(of stages.Type, label int) ([]byte, bool) {
	h, w := on.Spec.Height, on.Spec.Width
	if on.Spec.Text != nil && !on.Spec.Text.Fixed && !on.Long {
		w = min(w, 2*shortestText)
	}
	switch of {
	case stages.Images:
		if on.Spec.Text != nil {
			return stages.NewTensor(make([]int64, 3*w), 3, w).Encode(), true
		}
		return stages.NewTensor(make([]uint8, 3*h*w), 3, h, w).Encode(), true
	case stages.Background:
		return stages.NewTensor(make([]uint8, 2*3*h*w), 2, 3, h, w).Encode(), true
	case stages.Masks:
		return stages.NewTensor(make([]uint8, h*w), h, w).Encode(), true
	case stages.Maps:
		return stages.NewTensor(make([]float32, h*w), h, w).Encode(), true
	case stages.Curves: // of their ends
		return stages.NewTensor(make([]float64, 8), 4, 2).Encode(), true
	case stages.Ranks:
		return stages.NewTensor(make([]uint32, h*w), h, w).Encode(), true
	case stages.Segments:
		return stages.NewTensor(make([]uint32, h*w), h, w).Encode(), true
	case stages.Removals:
		c := on.Spec.Channels
		return stages.NewTensor(make([]uint8, c*h*w), c, h, w).Encode(), true
	case stages.Targets:
		if on.Spec.Heads > 0 {
			return stages.NewTensor([]int64{0, -1, 0}, 3).Encode(), true
		}
		return stages.NewTensor([]int64{0}, 1).Encode(), true
	case stages.Labels:
		return stages.NewTensor([]int64{int64(label)}, 1).Encode(), true
	}
	return nil, false
}

// Close closes what Keep kept.
func (r *Rehearsal) Close() error {
	var errs []error
	for _, c := range r.kept {
		errs = append(errs, c.Close())
	}
	r.kept = nil
	return errors.Join(errs...)
}

// run counts a run of a program.
func (r *Rehearsal) run(p *Program) error {
	if r.Pretend {
		p.pretend()
		return nil
	}
	if p.act != r.act {
		p.act, p.ran = r.act, 0
	}
	if p.ran == enough {
		return ErrRehearsed
	}
	p.ran++
	return nil
}

// pretend fills the program's outputs with numbers in [−1, 1), those of a row drawn from the row's inputs and
// the shared ones.
func (p *Program) pretend() {
	sizes := make([]int, len(p.inputs)) // of a row
	for f, t := range p.inputs {
		if sizes[f] = len(t.Data); p.signature.Inputs[f].Shape[0] == p.Batch {
			sizes[f] /= p.Batch
		}
	}
	draw := func(row int) *rand.Rand {
		h := sha256.New()
		for f, t := range p.inputs {
			from := 0
			if sizes[f] < len(t.Data) {
				from = row * sizes[f]
			}
			binary.Write(h, binary.LittleEndian, t.Data[from:from+sizes[f]])
		}
		return rand.New(rand.NewChaCha8([32]byte(h.Sum(nil))))
	}
	fill := func(r *rand.Rand, to []float32) {
		for i := range to {
			to[i] = float32(int32(r.Uint32())>>7) / (1 << 24)
		}
	}
	for row := range p.Batch {
		r := draw(row)
		fill(r, p.Row(row))
		for k, t := range p.outputs {
			if p.signature.Outputs[k].Shape[0] == p.Batch {
				fill(r, p.part(t, row))
			} else if row == 0 {
				fill(r, t.Data)
			}
		}
	}
}

// A Remarker is parameters of a stage with a remark on some nets, "" on the others.
type Remarker interface {
	Remark(g *onnx.Graph) string
}
