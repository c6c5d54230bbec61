package target

import (
	"errors"
	"fmt"
	"math"
)

// An Original is what parameters are frozen of.
type Original struct {
	// Row is the model's answer for the original image, and Other that for the image on the port other.
	Row, Other []float32
	Label      int64
	Mask       []float64 // [height, width]
}

// A state is what terms are evaluated in.
type state struct {
	head   *Head
	row    []float32
	params []float32 // nil while they are frozen
	of     *Original // then
}

// ErrUndefined says that what is frozen depends on a value that isn't a number, such as the cosine of a
// vector of zeros.
var ErrUndefined = errors.New("a value that isn't a number")

// Freeze returns the parameters of an expression for one image.
func (h *Head) Freeze(of Original) ([]float32, error) {
	s := &state{head: h, row: of.Row, of: &of}
	params := make([]float32, 0, h.width)
	for _, t := range h.frozen {
		v, err := s.eval(t)
		if err != nil {
			return nil, err
		}
		for _, x := range v.data {
			params = append(params, float32(x))
		}
	}
	return params, nil
}

// Value returns the value of an expression for a row of the model's answers: NaN where it is undefined.
func (h *Head) Value(row, params []float32) float64 {
	if len(params) != h.width {
		return math.NaN()
	}
	if params == nil {
		params = []float32{}
	}
	v, err := (&state{head: h, row: row, params: params}).eval(h.root)
	if err != nil {
		return math.NaN() // which only what is frozen returns, and that is frozen already
	}
	return v.number()
}

// eval returns the value of a term.
func (s *state) eval(t *term) (array, error) {
	switch {
	case t.value != nil:
		return *t.value, nil
	case t.at >= 0 && s.params != nil:
		return doubles(s.params[t.at:t.at+size(t.Shape)], t.Shape), nil
	case t.operator == &read:
		return doubles(s.output(t.node.text, t.Shape), t.Shape), nil
	case t.operator == &other:
		if s.of.Other == nil {
			return array{}, fmt.Errorf("port other has no image for it")
		}
		elsewhere := *s
		elsewhere.row = s.of.Other
		return elsewhere.eval(t.args[0])
	case t.operator.word != nil:
		return t.operator.word(s, t)
	}
	args := make([]array, len(t.args))
	for k, a := range t.args {
		if a == nil {
			continue
		}
		var err error
		if args[k], err = s.eval(a); err != nil {
			return array{}, err
		}
	}
	if t.made != nil {
		return evaluated(t, args), nil
	}
	return t.eval(t, args)
}

// output returns an output's elements of a row.
func (s *state) output(name string, shape []int) []float32 {
	at := s.head.sizeBefore(name)
	return s.row[at : at+size(shape)]
}

func doubles(v []float32, shape []int) array {
	out := array{shape, make([]float64, len(v))}
	for i, x := range v {
		out.data[i] = float64(x)
	}
	return out
}
