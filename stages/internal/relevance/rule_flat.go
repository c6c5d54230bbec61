package relevance

import "fmt"

// Flat is the flat rule: all inputs of an output get equal relevance, independent of data and weights.
// Lapuschkin et al., "Unmasking Clever Hans Predictors", 2019.
func Flat(stabiliser float32) LayerRule {
	return LayerRule{fmt.Sprintf("flat(%g)", stabiliser), func(b *Builder, l layer, r Value) Value {
		return l.blind(b, b.ones(l.w()), r, stabiliser)
	}}
}

// WSquare is the w²-rule: inputs get relevance in proportion to their squared weights, independent of the
// data. Montavon et al. 2017, equation 12.
func WSquare(stabiliser float32) LayerRule {
	return LayerRule{fmt.Sprintf("w-square(%g)", stabiliser), func(b *Builder, l layer, r Value) Value {
		return l.blind(b, b.Mul(l.w(), l.w()), r, stabiliser)
	}}
}

// blind emits the relevance for data of ones and weights w, without a bias.
func (l layer) blind(b *Builder, w, r Value, stabiliser float32) Value {
	z := l.with(b, b.ones(l.x()), w, "").Output[0]
	s := b.quotient(r, z, stabiliser, atLeast0)
	return l.adjoint(b, l.with(b, l.x(), w, ""), s)
}

// ones emits ones in the shape of v, as a node that keeps them out of the file.
func (b *Builder) ones(v Value) Value { return b.Expand(b.Ones(1), b.Shape(v)...) }
