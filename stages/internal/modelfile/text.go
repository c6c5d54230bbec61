package modelfile

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Text specifies a model that takes texts. To programs a text is an image of one row, whose pixels are its
// tokens and whose channels are, in this order, their ids, the attention mask, and their types.
type Text struct {
	// Embedding is the value of the graph that depends on ids alone and has a vector a token, [N, n,
	// dimension]: the model is explained there.
	Embedding string `json:"embedding"`
	// Dimension is the length of the vectors, 0 if unknown.
	Dimension int `json:"dimension,omitempty"`
	// Vocabulary is the number of ids that the model has vectors for, 0 if unknown.
	Vocabulary int `json:"vocabulary,omitempty"`
	// Attention reports that the model has an attention mask, so that padding changes nothing.
	Attention bool `json:"attention,omitempty"`
	// Fixed reports that the model takes texts of one length, [Spec.Width]; otherwise that is the largest.
	Fixed bool `json:"fixed,omitempty"`

	// Pad and Mask are the ids of the tokens that fill up and that hide, −1 if unknown. The data set
	// names them, not the model.
	Pad  int64 `json:"-"`
	Mask int64 `json:"-"`

	// Tried is the number of ids by which a model is tried while it is read, 0 for those of the vocabulary.
	Tried int `json:"-"`
}

// The channels of a text.
const (
	TextIDs = iota
	TextAttention
	TextTypes
	TextChannels // their number
)

// A Tokenised is a text of a port of type [stages.Tokens].
type Tokenised struct {
	IDs, Types []int64
	Special    []bool // the tokens that the tokeniser added
}

// Len returns the number of tokens.
func (t Tokenised) Len() int { return len(t.IDs) }

// Words returns the indices of the tokens that aren't special; not nil.
func (t Tokenised) Words() []int {
	out := []int{}
	for i, special := range t.Special {
		if !special {
			out = append(out, i)
		}
	}
	return out
}

// IsTokens reports whether a payload's tensor is a text's.
func IsTokens(t stages.Tensor) bool {
	return t.DType == stages.I64 && len(t.Shape) == 2 && t.Shape[0] == 3
}

// Tensor returns the tokens as a port has them.
func (t Tokenised) Tensor() stages.Tensor {
	v := append(append(make([]int64, 0, 3*t.Len()), t.IDs...), t.Types...)
	for _, special := range t.Special {
		if special {
			v = append(v, 1)
		} else {
			v = append(v, 0)
		}
	}
	return stages.NewTensor(v, 3, t.Len())
}

// Without returns the text without some of its tokens; those behind them move up.
func (t Tokenised) Without(gone func(token int) bool) (out Tokenised) {
	for i := range t.IDs {
		if !gone(i) {
			out.IDs, out.Types = append(out.IDs, t.IDs[i]), append(out.Types, t.Types[i])
			out.Special = append(out.Special, t.Special[i])
		}
	}
	return out
}

// Replaced returns the text with an id in the place of some of its tokens.
func (t Tokenised) Replaced(gone func(token int) bool, id int64) Tokenised {
	t.IDs = slices.Clone(t.IDs)
	for i := range t.IDs {
		if gone(i) {
			t.IDs[i] = id
		}
	}
	return t
}

// TokensOf reads a tensor of tokens.
func TokensOf(t stages.Tensor) (out Tokenised, err error) {
	if !IsTokens(t) {
		return out, fmt.Errorf("%s of shape %v are not the tokens of a text", t.DType, t.Shape)
	}
	n, v := t.Shape[1], t.Int64s()
	out = Tokenised{v[:n], v[n : 2*n], make([]bool, n)}
	for i, special := range v[2*n:] {
		out.Special[i] = special != 0
	}
	return out, nil
}

// text writes tokens into dst as [TextChannels, 1, Width], filled up with pads that the attention mask hides.
func (s Spec) text(t stages.Tensor, dst []float32) error {
	tokens, err := TokensOf(t)
	if err != nil {
		return fmt.Errorf("the model takes texts, and this is an image: %w", err)
	}
	n, width := tokens.Len(), s.Width
	switch {
	case n > width:
		return fmt.Errorf("a text of %d tokens is longer than the model's %d: dataset/text cuts texts by "+
			"length: %[2]d, and the command that writes tokens by --length %[2]d", n, width)
	case n < width && s.Text.Fixed && !s.Text.Attention && s.Text.Pad < 0:
		return fmt.Errorf("a text of %d tokens must be filled up to the model's %d, and the data set names "+
			"no token that does so", n, width)
	}
	clear(dst)
	if n < width && s.Text.Pad >= 0 && !s.Text.Knows(s.Text.Pad) {
		return fmt.Errorf("the token that fills up has the id %d by the data set, and the model knows the "+
			"ids from 0 to %d", s.Text.Pad, s.Text.Vocabulary-1)
	}
	for i := range width {
		if i >= n {
			dst[TextIDs*width+i] = float32(max(0, s.Text.Pad))
			continue
		}
		if err := s.checkID(i, tokens.IDs[i]); err != nil {
			return err
		}
		dst[TextIDs*width+i] = float32(tokens.IDs[i])
		dst[TextAttention*width+i] = 1
		dst[TextTypes*width+i] = float32(tokens.Types[i])
	}
	return nil
}

// Knows reports whether the model may have a vector for an id.
func (t *Text) Knows(id int64) bool {
	return id >= 0 && (t.Vocabulary == 0 || id < int64(t.Vocabulary))
}

// checkID returns an error for an id that the model has no vector for.
func (s Spec) checkID(i int, id int64) error {
	if !s.Text.Knows(id) {
		return fmt.Errorf("token %d has the id %d, and the model knows the ids from 0 to %d: the texts are "+
			"of another model's tokeniser", i, id, s.Text.Vocabulary-1)
	}
	return nil
}

// Hidden writes a text of n tokens, normalised in x, into dst, with an id in the place of all tokens but the
// special ones.
func (t Tokenised) Hidden(id int64, x, dst []float32) {
	copy(dst, x)
	for i, special := range t.Special {
		if !special {
			dst[i] = float32(id)
		}
	}
}
