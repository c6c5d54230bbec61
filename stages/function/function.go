// Package function makes stages of functions in files of Python: [Load] asks the user's interpreter what a
// function is (function.go), the fields of its parameters are made from the answer (params.go), and it is
// called in a process of its own (process.go). Nothing of a file is read or run before Load.
package function

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// A description is what the interpreter answers about a function.
type description struct {
	Error     string
	Kind      string // metric, maps
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

// inputs are the ports of a function, by the name of its argument.
var inputs = []struct {
	argument string
	port     stages.Port
}{
	{"map", stages.Port{Name: "maps", Type: stages.Maps, Doc: "the maps"}},
	{"image", stages.Port{Name: "images", Type: stages.Images, Doc: "the images that they explain"}},
	{"mask", stages.Port{Name: "masks", Type: stages.Masks, Doc: "masks of the objects"}},
	{"segments", stages.Port{Name: "segments", Type: stages.Segments, Doc: "segments of the images"}},
	{"label", stages.Port{Name: "labels", Type: stages.Labels, Doc: "the classes of the images"}},
	{"target", stages.Port{Name: "targets", Type: stages.Targets, Doc: "the explained classes"}},
}

// argumentOf returns the argument of a function that reads a port.
func argumentOf(port string) string {
	for _, in := range inputs {
		if in.port.Name == port {
			return in.argument
		}
	}
	return ""
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
	for _, in := range inputs {
		if slices.Contains(f.Inputs, in.argument) {
			s.Inputs = append(s.Inputs, in.port)
		}
	}
	switch f.Kind {
	case "metric":
		s.Outputs = []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the scores"}}
		m := stages.Measure{Unit: f.Unit, Direction: stages.Direction(f.Direction), Low: bound(f.Low, -1),
			High: bound(f.High, 1)}
		if !slices.Contains([]stages.Direction{stages.Higher, stages.Lower, stages.None}, m.Direction) {
			return nil, fmt.Errorf("%s: direction is %q, and must be higher, lower or none", f.uses,
				f.Direction)
		}
		s.Facts = func(any, map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
		}
	case "maps":
		s.Outputs = []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "the new maps"}}
	default:
		return nil, fmt.Errorf("%s is of the kind %q, which this runexp doesn't know", f.uses, f.Kind)
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
func (f *function) run(ctx context.Context, params map[string]any, e *stages.Env) error {
	p, err := f.take(ctx)
	if err != nil {
		return err
	}
	limit := time.Duration(f.Seconds * float64(time.Second))
	for i := range e.Len() {
		out, err := p.call(ctx, f.request(params, e, i), limit)
		if err != nil {
			f.release(p)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		e.Put(e.Stage.Outputs[0].Name, i, out)
		e.Done(1)
	}
	f.release(p)
	return nil
}

// A request is one call of a function.
type request struct {
	Params map[string]any `json:"params"`
	Arrays []array        `json:"arrays"`
	Seed   []uint32       `json:"seed,omitempty"`

	tensors []stages.Tensor
	err     error
	metric  bool
}

// An array is the head of an array in a message.
type array struct {
	Name  string `json:"name,omitempty"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func (f *function) request(params map[string]any, e *stages.Env, i int) *request {
	r := &request{Params: params, Arrays: []array{}, metric: f.Kind == "metric"}
	for k := range e.Stage.Inputs {
		port := e.Stage.Inputs[k].Name
		t, err := stages.DecodeTensor(e.In(port, i))
		if err != nil {
			r.err = fmt.Errorf("%s: %w", port, err)
			return r
		}
		r.tensors = append(r.tensors, t)
		r.Arrays = append(r.Arrays, array{argumentOf(port), dtypes[t.DType], t.Shape})
	}
	if e.Stage.Seeded {
		draw := e.Rand("rng", i)
		for range 8 {
			r.Seed = append(r.Seed, draw.Uint32())
		}
	}
	return r
}

// dtypes are the names of NumPy.
var dtypes = map[stages.DType]string{stages.U8: "uint8", stages.U32: "uint32", stages.I64: "int64",
	stages.F32: "float32", stages.F64: "float64"}

// fits returns an error unless a result has the type and shape of its kind, before its bytes are read.
func (r *request) fits(a array) (stages.DType, error) {
	d := stages.F64
	if a.DType == dtypes[stages.F32] {
		d = stages.F32
	}
	if r.metric {
		if !slices.Equal(a.Shape, []int{1}) {
			return d, fmt.Errorf("the function returned an array of the shape %v for a number", a.Shape)
		}
		return d, nil
	}
	of := r.tensors[0].Shape
	if !slices.Equal(a.Shape, of) && !slices.Equal(a.Shape, of[max(len(of)-2, 0):]) {
		return d, fmt.Errorf("the function returned an array of the shape %v for a map of the shape %v",
			a.Shape, of)
	}
	return d, nil
}
