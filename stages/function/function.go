// Package function makes stages of functions in files of Python: [Load] asks the user's interpreter what a
// function is (function.go), its ports and the fields of its parameters are made from the answer (kind.go,
// params.go), and it is called in a process of its own (process.go, start.py), which gets the model as an
// ONNX file (model.go). Nothing of a file is read or run before Load.
package function

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A description is what the interpreter answers about a function.
type description struct {
	Error     string
	Kind      string // one of kinds
	Doc       string
	Version   int
	Direction string
	Unit      string
	Low, High *float64
	Seconds   float64
	Inputs    []string // names of arguments
	Params    []param
	Code      string // the digest of all that decides the results: files, versions, decorator
}

// Load returns the stage that a function is. uses is how the experiment names it, file.py:name, and file the
// path of the file. The interpreter imports the file.
func Load(ctx context.Context, uses, file string) (*stages.Stage, error) {
	_, name, _ := strings.Cut(uses, ".py:")
	f := &function{uses: uses, file: file, name: name}
	p, d, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	f.release(p)
	f.description = d
	return f.stage()
}

// A function is one function of a file.
type function struct {
	description
	uses, file, name string
	pool             pool
}

func (f *function) stage() (*stages.Stage, error) {
	if kinds[f.Kind].of == "" {
		return nil, fmt.Errorf("%s is of the kind %q, which this runexp doesn't know", f.uses, f.Kind)
	}
	fields, err := newFields(f.Params, f.Code)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.uses, err)
	}
	s := &stages.Stage{NewParams: fields.fresh, Def: stages.Def[any]{
		Name: f.uses, Doc: f.Doc, Version: f.Version, Relation: stages.Each,
		Seeded:    slices.Contains(f.Inputs, "rng"),
		Tolerance: stages.UsualTolerance,
		Defaults:  fields.defaults(),
		Check:     func(params any, _ func(string) bool) error { return fields.check(params) },
		Run: func(ctx context.Context, params any, e *stages.Env) error {
			return f.run(ctx, fields.values(params), e)
		},
	}}
	s.Inputs, s.Outputs = f.inputs(), []stages.Port{kinds[f.Kind].output}
	switch f.Kind {
	case "metric":
		m := stages.Measure{Unit: f.Unit, Direction: stages.Direction(f.Direction), Low: bound(f.Low, -1),
			High: bound(f.High, 1)}
		if !slices.Contains([]stages.Direction{stages.Higher, stages.Lower, stages.None}, m.Direction) {
			return nil, fmt.Errorf("%s: direction is %q, and must be higher, lower or none", f.uses,
				f.Direction)
		}
		s.Facts = func(any, map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
		}
	case "attribute":
		if f.reads("target") {
			s.Declares = declares
		}
	}
	return s, nil
}

// bound returns the end of a range, infinite by default.
func bound(x *float64, sign int) float64 {
	if x == nil {
		return math.Inf(sign)
	}
	return *x
}

// run calls the function once an item.
func (f *function) run(ctx context.Context, params map[string]any, e *stages.Env) (err error) {
	var net *program.Net
	var m *classifier
	if f.reads("model") {
		if net, err = netOf(e); err != nil {
			return err
		}
	}
	if _, ok := e.Slot.(*program.Rehearsal); ok {
		return program.ErrNoPart // a check calls no function
	}
	if net != nil {
		if m, err = classifierOf(ctx, e, net); err != nil {
			return err
		}
	}
	p, err := f.take(ctx)
	if err != nil {
		return err
	}
	defer func() { f.release(p) }()
	limit := time.Duration(f.Seconds * float64(time.Second))
	for i := range e.Len() {
		r, err := f.request(params, e, i, m)
		if err == nil && f.Kind == "metric" && r.tensors[0].Undefined() > 0 {
			e.Put("scores", i, stages.Scalar(math.NaN()))
			e.Done(1)
			continue
		}
		var out stages.Tensor
		if err == nil {
			out, err = p.call(ctx, r, limit)
		}
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		f.put(e, i, out)
	}
	return nil
}

// put puts the result of item i. There are several NaN, and one of a score. The values of a map that are not
// numbers are reported as those of other methods, and what reads the map is undefined.
func (f *function) put(e *stages.Env, i int, out stages.Tensor) {
	payload, port := out.Encode(), &e.Stage.Outputs[0]
	switch port.Type {
	case stages.Scores:
		payload = stages.Scalar(out.Float64s()[0])
	case stages.Maps:
		if undefined := out.Undefined(); undefined > 0 {
			e.WarnItem(i, "%d of %d values of its map are not numbers", undefined, out.Len())
		}
	}
	e.Put(port.Name, i, payload)
	e.Done(1)
}

// A request is one call of a function.
type request struct {
	Params map[string]any `json:"params"`
	Arrays []array        `json:"arrays"`
	Seed   []uint32       `json:"seed,omitempty"`
	Model  *modelHead     `json:"model,omitempty"` // unless the process has it

	kind    kind
	of      []int // the shape of what the result is of
	tensors []stages.Tensor
	model   *classifier // nil if the function reads none
}

// An array is the head of an array in a message.
type array struct {
	Name  string `json:"name,omitempty"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func (f *function) request(params map[string]any, e *stages.Env, i int, m *classifier) (*request, error) {
	r := &request{Params: params, Arrays: []array{}, kind: kinds[f.Kind], model: m}
	for k := range e.Stage.Inputs {
		port := &e.Stage.Inputs[k]
		if !port.Type.Items || !f.reads(argumentOf(port.Name)) {
			continue
		}
		payload := e.In(port.Name, i)
		if payload == nil {
			return nil, fmt.Errorf("the port %s has nothing for it", port.Name)
		}
		t, err := stages.DecodeTensor(payload)
		switch {
		case err != nil || port.Type != stages.Targets:
		case m != nil:
			t, err = m.target(payload)
		case t.DType != stages.I64:
			err = errors.New("an expression is explained, and functions in Python take classes")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", port.Name, err)
		}
		if port.Name == r.kind.of {
			r.of = t.Shape
		}
		r.tensors = append(r.tensors, t)
		r.Arrays = append(r.Arrays, array{argumentOf(port.Name), dtypes[t.DType], t.Shape})
	}
	if e.Stage.Seeded {
		draw := e.Rand("rng", i)
		for range 8 {
			r.Seed = append(r.Seed, draw.Uint32())
		}
	}
	return r, nil
}

// dtypes are the names of NumPy.
var dtypes = map[stages.DType]string{stages.U8: "uint8", stages.U32: "uint32", stages.I64: "int64",
	stages.F32: "float32", stages.F64: "float64"}
