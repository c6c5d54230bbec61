package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/model"
)

// Models looks into the files of the models that experiments name, each once.
type Models struct {
	// NoRuntime says why it couldn't: there's no ONNX Runtime.
	NoRuntime error

	seen map[string]seen
}

type seen struct {
	model.Inspection
	err error
}

// Unfit says why a stage with these parameters can't explain what another one with the
// parameters of makes. It is nil where that isn't known before both run: of aren't
// those of model/onnx, the file isn't there, or ONNX Runtime can't run it.
func (m *Models) Unfit(ctx context.Context, s *stages.Stage, params, of any) error {
	file, ok := of.(*model.ONNXParams)
	if !ok {
		return nil
	}
	n := attribute.NeedsOf(s, params)
	inner := n.Layer != "input" && n.Layer != ""
	if inner {
		n.Gradient, n.Rules = false, "" // what lies before the layer doesn't matter
	}
	if !n.Gradient && !n.Attention && !n.Others && !inner {
		return nil
	}
	if _, err := os.Stat(file.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := OpenRuntime(); err != nil {
		m.NoRuntime = err
		return nil
	}
	key := fmt.Sprintf("%+v", *file)
	x, ok := m.seen[key]
	if !ok {
		x.Inspection, x.err = model.Inspect(ctx, *file)
		if m.seen == nil {
			m.seen = map[string]seen{}
		}
		m.seen[key] = x
	}
	if x.err != nil || x.Problem != "" {
		return x.err
	}
	if why := noLayer(x.Inspection, n.Layer); why != "" {
		return stages.BadField("layer", "%s", why)
	}
	if why := unfit(x.Inspection, n); why != "" {
		return errors.New(why)
	}
	return nil
}

// unfit says why a model hasn't what a method needs, "" if it has.
func unfit(x model.Inspection, n attribute.Needs) string {
	switch {
	case n.Gradient && x.Gradient != "":
		return x.Gradient
	case n.Attention && x.Attention != "":
		return x.Attention
	case x.Rules[n.Rules] != "":
		return x.Rules[n.Rules]
	case n.Others && x.Feed.Classes == 1:
		return "the model has one class, and no others to compare it with"
	}
	return noLayer(x, n.Layer)
}

// noLayer says why a model hasn't a layer, "" if it has.
func noLayer(x model.Inspection, layer string) string {
	switch layer {
	case "", "input":
		return ""
	case "middle", "final":
		if layer == "middle" && x.Middle != nil || layer == "final" && x.Final != nil {
			return ""
		}
		return "no inner value has places that everything passes through: name a layer"
	}
	if x.Values[layer] {
		return ""
	}
	return fmt.Sprintf("no value of the model's graph is called %q", layer)
}
