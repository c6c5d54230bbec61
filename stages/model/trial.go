package model

import (
	"context"
	"errors"
	"io/fs"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/variant"
)

// A Trial checks stages against a model: it does everything that a run does before the model's first
// answer.
type Trial struct {
	Spec modelfile.Spec

	// Notes are remarks for the user on the interpretation of the model, such as parameters that contradict
	// the file.
	Notes []string

	model stages.Data
	net   *program.Net
	slot  program.Rehearsal
}

// NewTrial returns a trial of the model that [ONNX] with these parameters reads, or the error that ONNX would
// return, ignoring a missing file of labels.
func NewTrial(ctx context.Context, p ONNXParams) (*Trial, error) {
	m, notes, err := readFile(p.Path)
	if err == nil {
		err = p.hold(m)
	}
	if err != nil {
		return nil, err
	}
	out, err := read(ctx, m, p)
	if err != nil {
		return nil, err
	}
	declared := declaredOf(m, p.Input)
	labels, err := labelsOf(p.Labels, out.Spec, declared)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, stages.BadField("labels", "labels: %w", err)
	}
	names := labels
	if err != nil {
		names = program.AnyNames
	}
	t, err := trialOf(out.Model, names)
	if err == nil {
		t.Notes = append(append(notes, out.notes...), warnings(m, declared, p, out.Spec, labels)...)
	}
	return t, err
}

// Rewritten returns a trial of the model that the stage with these parameters makes, or the stage's error.
// Its outputs have a [stages.Port.Base].
func (t *Trial) Rewritten(ctx context.Context, params any) (*Trial, error) {
	if p, ok := params.(*TargetParams); ok {
		return t.explaining(*p)
	}
	m, err := t.net.Rewritten(ctx, params.(rewriting).rewriter())
	if err != nil {
		return nil, err
	}
	return trialOn(m, labelsLike(t.model.Facts, t.net, m.Spec), &t.model)
}

// explaining returns a trial of the model whose answer is an expression.
func (t *Trial) explaining(p TargetParams) (*Trial, error) {
	m, _, err := p.made(t.net, &t.slot, t.model.Facts["labels"])
	if err != nil {
		return nil, err
	}
	return trialOn(m, "", &t.model)
}

// OfOtherItems reports whether an error of [Trial.Rewritten] is that the stage is for models of texts, and
// the model takes images, or the reverse.
func OfOtherItems(err error) bool { return errors.As(err, new(*variant.OtherItemsError)) }

func trialOf(m modelfile.Model, labels string) (*Trial, error) { return trialOn(m, labels, nil) }

// trialOn returns a trial of a model, whose classes have these names, that was derived from base.
func trialOn(m modelfile.Model, labels string, base *stages.Data) (*Trial, error) {
	payload, err := m.Encode()
	if err != nil {
		return nil, err
	}
	t := &Trial{Spec: m.Spec, model: stages.Data{
		Items: stages.ItemSlice{{Digest: stages.Sum(payload)}},
		Load:  func(int) ([]byte, error) { return payload, nil },
		Base:  base,
		Facts: factsOf(m.Spec, labels),
	}}
	t.net, err = program.LoadNet(&t.slot, t.model)
	return t, err
}

// Unfit returns why a stage with these parameters can't work on the model; nil if it can or isn't part of a
// trial. wired reports which optional ports are connected.
func (t *Trial) Unfit(ctx context.Context, s *stages.Stage, params any, wired func(port string) bool,
	texts stages.Facts) error {
	err := t.slot.Rehearse(ctx, s, params,
		program.Subject{Spec: t.Spec, Model: t.model, Texts: texts}, wired)
	if errors.Is(err, program.ErrNoPart) {
		return nil
	}
	return err
}

// Remark returns a remark for the user about a stage with these parameters on the model, or "" if there is
// none, or the model has no graph.
func (t *Trial) Remark(ctx context.Context, params any) (string, error) {
	r, ok := params.(program.Remarker)
	if !ok {
		return "", nil
	}
	g, err := t.graph(ctx)
	if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
		return "", err
	}
	if err != nil {
		return "", nil
	}
	return r.Remark(g), nil
}

// The measurements of programs on devices.
type (
	Usage    = program.Usage
	Fallback = program.Fallback
	Copies   = program.Copies
)

// A Halved says in which precision a node of a program in float16 computes, and why.
type Halved = lower.Halved

// Halved lists the nodes of the program that classifies in float16: see [program.Net.Halved].
func (t *Trial) Halved(ctx context.Context) ([]Halved, error) { return t.net.Halved(ctx, &t.slot) }

// Usages measures how the programs that a stage with these parameters runs on the model use a device.
func (t *Trial) Usages(ctx context.Context, d stages.Device, s *stages.Stage, params any) ([]Usage, error) {
	r := program.Measuring(d, &t.slot)
	defer r.Close()
	err := r.Rehearse(ctx, s, params, program.Subject{Spec: t.Spec, Model: t.model},
		func(string) bool { return false })
	return r.Usages, err
}

// Model returns the model as a port has it.
func (t *Trial) Model() stages.Data { return t.model }

// batch returns the batch in the shapes of [Trial.graph].
func (t *Trial) batch() int { return t.net.Fit(2, 2) }

// graph returns the model's graph, which the caller may modify.
func (t *Trial) graph(ctx context.Context) (*onnx.Graph, error) {
	return t.net.Graph(ctx, &t.slot, t.batch())
}

// Close releases the model.
func (t *Trial) Close() error { return t.slot.Close() }
