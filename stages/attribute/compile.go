package attribute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// A Compilation specifies an ONNX model that returns the map of a method with the outputs of a model.
type Compilation struct {
	Stage  *stages.Stage // the method
	Params any           // its parameters
	Model  stages.Data   // as model/onnx has it
	Slot   stages.Slot

	Fixed       int    // the only number of images that the file takes; 0 for any, if the model does
	Prepares    bool   // the model prepares images itself, as the specification of Model says
	Prepared    bool   // that specification is the user's, and not a default
	TargetInput bool   // the class is an input
	NoiseInput  bool   // the noise of methods that draw some is an input
	Seed        uint64 // of noise that is in the file

	Notes map[string]string // metadata of the file
}

// A Compiled model, and its inputs and outputs.
type Compiled struct {
	ONNX    []byte
	Inputs  []CompiledValue
	Outputs []CompiledValue // the model's own, and the map
	Map     string          // the output with the map
	Opset   int
	Fixed   string // why the file takes Batch images at once; "" if it takes any number
	Batch   int    // 0 for any number
	Nodes   int
	Remarks []string // of the method
}

// A CompiledValue is an input or output.
type CompiledValue struct {
	Name  string
	Type  string // as ONNX spells it, such as float
	Shape []int  // −1 for the batch
}

// An emitter is a method whose map is made by nodes of the model's graph alone.
type emitter interface {
	// emit emits the map of a batch, [batch, height, width], or with its channels.
	emit(m *emission) (standalone.Numbers, error)
}

// Compiles reports whether a method's map can be made by the model's graph alone.
func Compiles(params any) bool {
	_, ok := emitterOf(params)
	return ok
}

// WhyUncompiled returns why a method's map can't be made by the model's graph, "" if it's for no reason of
// its own.
func WhyUncompiled(params any) string {
	if p, ok := params.(interface{ whyUncompiled() string }); ok {
		return p.whyUncompiled()
	}
	return ""
}

// emitterOf returns the method of a stage, given its parameters.
func emitterOf(params any) (emitter, bool) {
	if e, ok := params.(emitter); ok {
		return e, true
	}
	p, ok := params.(propagationParams)
	return propagated{p}, ok
}

// An emission is a method's file in the making, for a batch.
type emission struct {
	*standalone.Draft
	Compilation
	ctx context.Context
	env *stages.Env
	net *program.Net

	images  string               // normalised, [batch, C, H, W]
	weights string               // how much each class counts, [batch, classes]
	main    *standalone.Included // the first program, which runs the model on the images
	outputs []ownOutput          // what the model's own outputs are made of, once that is emitted
	of      *onnx.Graph          // the result of graph
	// explained says that weights are made
	explained bool
	later     []func(t program.TargetNodes) error
	noise     *onnx.Value // the input of noise, if the method draws some
	names     fileNames
}

// Compile writes the ONNX model. The error says why a method or model can't be compiled.
func Compile(ctx context.Context, c Compilation) (out Compiled, err error) {
	defer onnx.Sound(&err)
	e := &stages.Env{Stage: c.Stage, Slot: c.Slot, Batch: 2, Seed: c.Seed,
		Ports: map[string][]stages.Data{"model": {c.Model}}}
	e.OnWarn = func(w stages.Warning) {
		if text := w.String(); !slices.Contains(out.Remarks, text) {
			out.Remarks = append(out.Remarks, text)
		}
	}
	if !c.Prepared {
		if c.Model, err = unprepared(c.Model); err != nil {
			return out, err
		}
		e.Ports["model"] = []stages.Data{c.Model}
	}
	n, err := program.Load(e)
	if err != nil {
		return out, err
	}
	if n.Text != nil {
		return out, errors.New("the model takes texts: files are compiled of models of images")
	}
	if err := checkNoInput(c); err != nil {
		return out, err
	}
	names, err := namesIn(n, c)
	if err != nil {
		return out, err
	}
	at := func(batch int) (*onnx.Model, error) {
		m := &emission{Draft: standalone.New(batch), Compilation: c, ctx: ctx, env: e, net: n, names: names}
		err := m.file(&out)
		return m.Draft.Model, err
	}
	model, err := out.free(at, c.Fixed, n.Batch, names.image)
	if err != nil {
		return out, err
	}
	if !c.Prepared && readsPixels(model) {
		return out, fmt.Errorf("%s needs to know the values of black and white pixels at the model's input: "+
			"name the preset", c.Stage.Name)
	}
	if n := foreign(model.Proto.Graph); n != "" {
		return out, fmt.Errorf("the model has %s, which isn't one of ONNX's own operators, and which only "+
			"some runtimes know", n)
	}
	standalone.Enclose(model)
	return out, out.describe(model, c.Notes)
}

// checkNoInput refuses inputs that the method doesn't have.
func checkNoInput(c Compilation) error {
	if _, draws := c.Params.(interface{ copies() Copies }); c.NoiseInput && !draws {
		return fmt.Errorf("%s draws no noise, which could be an input", c.Stage.Name)
	}
	if c.TargetInput && ClassFree(c.Stage) {
		return fmt.Errorf("the map of %s is the same for all classes: there is no class to choose by an "+
			"input", c.Stage.Name)
	}
	return nil
}

// free returns the file for the batch that is asked for, the model's own, or any.
func (out *Compiled) free(at func(batch int) (*onnx.Model, error), asked, own int, image string) (*onnx.Model,
	error) {
	switch {
	case asked > 0 && own > 0 && asked != own:
		return nil, stages.BadField("batch", "batch %d: the model takes %d images at once", asked, own)
	case own > 0:
		out.Fixed, out.Batch = "as the model does", own
		return at(own)
	case asked > 0:
		out.Fixed, out.Batch = "as asked", asked
		return at(asked)
	}
	m, err := rewrite.FreeBatch(at, image)
	if !errors.Is(err, program.ErrOneImage) {
		return m, err
	}
	out.Fixed, out.Batch = err.Error(), 1
	return at(1)
}
