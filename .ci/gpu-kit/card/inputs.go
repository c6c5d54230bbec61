package main

import (
	"cmp"
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// on returns the first device of a class, to be released.
func on(class string) stages.Slot { return stagetest.NewSlotOn(stages.Device{Class: class}) }

// drawn is how many different images there are: more are copies.
const drawn = 16

// inputs are what methods and curves read, for a net and drawn images of its size: data by port, or by the
// stage that the engine inserts before a port.
type inputs map[string]stages.Data

// newInputs explains the classes that a net predicts; maps are random.
func newInputs(net string) (inputs, error) {
	path, size, err := findNet(net)
	if err != nil {
		return nil, err
	}
	file := model.ONNX.NewParams().(*model.ONNXParams)
	file.Path, file.Preset = path, "unit"
	file.Size.H, file.Size.W = size, size
	images := dataset.Shapes.NewParams().(*dataset.ShapesParams)
	images.Count, images.Size = drawn, size

	in := inputs{}
	for _, s := range []struct {
		stage  stages.Stage
		params any
	}{{model.ONNX, file}, {dataset.Shapes, images}, {model.Predict, nil}, {attribute.Random, nil}, {maps.Rank,
		nil}, {dataset.Background, nil}} {
		r, err := stagetest.Try(s.stage, s.params, in.given(&s.stage))
		if err != nil {
			return nil, err
		}
		for port, payloads := range r.Payloads {
			switch {
			case s.stage.Name == maps.Rank.Name:
				in[maps.Rank.Name] = stagetest.Items(r.Facts[port], payloads...)
			case s.stage.Name == dataset.Background.Name:
				in[dataset.Background.Name] = stagetest.Value(r.Facts[port], payloads[0])
			case port == "model":
				in[port] = stagetest.Value(r.Facts[port], payloads[0])
			default:
				in[port] = stagetest.Items(r.Facts[port], payloads...)
			}
		}
	}
	return in, nil
}

// from returns the name under which the inputs have a port's data.
func from(p stages.Port) string {
	if p.ViaIf != nil {
		return p.Name // the classes are explained, and no expression
	}
	return cmp.Or(p.Via, p.Name)
}

// given returns the data of a stage's ports.
func (in inputs) given(s *stages.Stage) map[string][]stages.Data {
	all := map[string][]stages.Data{}
	for _, p := range s.Inputs {
		if d, ok := in[from(p)]; ok {
			all[p.Name] = []stages.Data{d}
		}
	}
	return all
}

// images returns the inputs with so many images.
func (in inputs) images(count int) (inputs, error) {
	out := inputs{}
	for port, d := range in {
		out[port] = d
		if d.Items.Len() != drawn { // the model
			continue
		}
		payloads := make([][]byte, count)
		for i := range payloads {
			var err error
			if payloads[i], err = d.Load(i % drawn); err != nil {
				return nil, err
			}
		}
		out[port] = stagetest.Items(d.Facts, payloads...)
	}
	return out, nil
}

// serves reports whether the inputs have every port that a stage needs.
func (in inputs) serves(s *stages.Stage) bool {
	for _, p := range s.Inputs {
		if _, ok := in[from(p)]; !ok && !p.Optional {
			return false
		}
	}
	return true
}

// compute runs a stage with some batch on a slot.
func (in inputs) compute(ctx context.Context, slot stages.Slot, s *stages.Stage, params any,
	batch int) (*stages.Env, error) {
	e, err := stagetest.Env(s, in.given(s))
	if err != nil {
		return nil, err
	}
	e.Slot, e.Batch = slot, batch
	return e, s.Run(ctx, params, e)
}
