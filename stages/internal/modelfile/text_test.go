package modelfile

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func textSpec(t Text) Spec {
	return Spec{Height: 1, Width: 5, Channels: TextChannels, Classes: 2, Text: &t,
		Mean: []float64{0, 0, 0}, Std: []float64{1, 1, 1}}
}

func someTokens(ids ...int64) stages.Tensor {
	n := len(ids)
	v := append(ids, make([]int64, 2*n)...)
	v[n+1], v[2*n] = 1, 1 // the second token is of the second type, the first is special
	return stages.NewTensor(v, 3, n)
}

func TestTextIsFilledUp(t *testing.T) {
	s := textSpec(Text{Vocabulary: 10, Attention: true, Pad: 7})
	dst := slices.Repeat([]float32{9}, s.Size())
	if err := s.Normalise(someTokens(2, 3, 4), dst); err != nil {
		t.Fatal(err)
	}
	want := []float32{2, 3, 4, 7, 7 /**/, 1, 1, 1, 0, 0 /**/, 0, 1, 0, 0, 0}
	if !slices.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
	tokens, err := TokensOf(someTokens(2, 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	hidden := make([]float32, len(dst))
	tokens.Hidden(8, dst, hidden)
	want = append([]float32{2, 8, 8}, dst[3:]...)
	if !slices.Equal(hidden, want) {
		t.Errorf("hidden: %v, want the ids %v", hidden, want)
	}
}

func TestTextsThatDontFit(t *testing.T) {
	image := stages.NewTensor(make([]uint8, 15), 3, 1, 5)
	plain := textSpec(Text{Vocabulary: 10, Attention: true, Pad: -1})
	fixed := textSpec(Text{Vocabulary: 10, Fixed: true, Pad: -1})
	beyond := textSpec(Text{Vocabulary: 10, Attention: true, Pad: 10})
	images := textSpec(Text{})
	images.Text = nil
	for _, c := range []struct {
		spec Spec
		item stages.Tensor
		want string
	}{
		{plain, someTokens(1, 2, 3, 4, 5, 6), "longer than the model's 5"},
		{plain, someTokens(1, 10), "token 1 has the id 10"},
		{plain, someTokens(-1, 1), "token 0 has the id -1"},
		{plain, image, "takes texts"},
		{fixed, someTokens(1, 2), "names no token"},
		{beyond, someTokens(1, 2), "the token that fills up has the id 10"},
		{images, someTokens(1, 2), "the model takes images"},
	} {
		err := c.spec.Normalise(c.item, make([]float32, c.spec.Size()))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := fixed.Normalise(someTokens(1, 2, 3, 4, 5), make([]float32, fixed.Size())); err != nil {
		t.Errorf("a text of the model's length: %v", err)
	}
}
