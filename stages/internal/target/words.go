package target

import (
	"fmt"
	"math"
	"slices"
)

// A reserved is a word with a meaning of its own, which no output has.
type reserved struct {
	name string
	bind func(b *binder, n *node) (*term, error)
}

const (
	answerWord    = "output"
	predictedWord = "predicted"
)

// words returns all of them.
func words() []reserved {
	return []reserved{
		{"label", bindLabel}, {predictedWord, bindPredicted}, {"mask", bindMask}, {"vectors", bindVectors},
	}
}

// wordNamed returns the word of a name, nil if there is none.
func wordNamed(name string) *reserved {
	all := words()
	if k := slices.IndexFunc(all, func(w reserved) bool { return w.name == name }); k >= 0 {
		return &all[k]
	}
	return nil
}

// given returns the term of a word that is frozen.
func given(n *node, o *operator, low, high float64, shape ...int) *term {
	return &term{operator: o, node: n, at: -1, Type: Type{Shape: shape, Low: low, High: high, Frozen: true}}
}

// label is the number of the labelled class.
func bindLabel(b *binder, n *node) (*term, error) {
	b.head.Needs.Label = true
	return given(n, &labelled, 0, math.Inf(1)), nil
}

var labelled = operator{name: "label", word: func(s *state, _ *term) (array, error) {
	if s.of.Label < 0 {
		return array{}, fmt.Errorf("port labels has no class for it")
	}
	return scalar(float64(s.of.Label)), nil
}}

// predicted is the number of the class with the largest answer, predicted:2 that of the second.
func bindPredicted(b *binder, n *node) (*term, error) {
	rank := max(1, int(n.number))
	switch {
	case b.Classes == 0:
		return nil, b.errorAt(n, "write frozen(argmax(…))", "the model has no classes to predict")
	case rank > b.Classes:
		return nil, b.errorAt(n, "", "predicted:%d: the model has %d classes", rank, b.Classes)
	}
	answer, err := b.output(&node{op: opWord, at: n.at, text: answerWord})
	if err != nil {
		return nil, err
	}
	t := given(n, &ranked, 0, float64(b.Classes-1))
	t.args, t.ints = []*term{answer}, []int{rank}
	return t, nil
}

var ranked = operator{name: predictedWord, word: func(s *state, t *term) (array, error) {
	answer, err := s.eval(t.args[0])
	if err != nil {
		return array{}, err
	}
	left := append([]float64{}, answer.data...)
	for k := 1; ; k++ {
		best := largest(left)
		switch {
		case best < 0:
			return array{}, fmt.Errorf("the model's output contains NaN")
		case k == t.ints[0]:
			return scalar(float64(best)), nil
		}
		left[best] = math.Inf(-1)
	}
}}

// mask is the mask on the port masks, 1 on the object and 0 elsewhere, [height, width] of the image.
func bindMask(b *binder, n *node) (*term, error) {
	b.head.Needs.Mask = true
	return given(n, &masked, 0, 1, b.Height, b.Width), nil
}

var masked = operator{name: "mask", word: func(s *state, t *term) (array, error) {
	if s.of.Mask == nil {
		return array{}, fmt.Errorf("port masks has no mask for it")
	}
	return array{t.Shape, s.of.Mask}, nil
}}

// vectors is what the parameter vectors of model/target has.
func bindVectors(b *binder, n *node) (*term, error) {
	if b.VectorsShape == nil {
		return nil, b.errorAt(n, "give vectors: FILE.npy", "there are no vectors")
	}
	v := doubles(b.Vectors, b.VectorsShape)
	t := given(n, &constant, slices.Min(v.data), slices.Max(v.data), b.VectorsShape...)
	t.value, t.Linear = &v, true
	return t, nil
}
