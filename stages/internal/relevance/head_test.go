package relevance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// block sketches a pre-norm block of attention b on tokens in, [2,5,8]; its end is called end<b>.
func block(b int, in string) string {
	return strings.NewReplacer("#", fmt.Sprint(b), "IN", in).Replace(`n# = LayerNormalization(IN, w, w) 2,5,8
q# = MatMul(n#, w) 2,5,8
qh# = Reshape(q#, s) 2,2,5,4
k# = MatMul(n#, w) 2,5,8
kh# = Reshape(k#, s) 2,2,4,5
d# = MatMul(qh#, kh#) 2,2,5,5
a# = Softmax(d#) 2,2,5,5
o# = MatMul(a#, qh#) 2,2,5,4
r# = Reshape(o#, s) 2,5,8
mid# = Add(IN, r#) 2,5,8
m# = LayerNormalization(mid#, w, w) 2,5,8
f# = MatMul(m#, w) 2,5,8
g# = Relu(f#) 2,5,8
end# = Add(mid#, g#) 2,5,8
`)
}

// tokensOfSketch are four patches behind a class token.
const tokensOfSketch = `c = Conv(x, w) 2,8,2,2
p = Reshape(c, s) 2,4,8
t = Concat(p, p) 2,5,8
`

// TestFindHead holds where blocks end, and which heads treat tokens alike until they pool or select them.
func TestFindHead(t *testing.T) {
	two := tokensOfSketch + block(1, "t") + block(2, "end1")
	mean := onnx.Attr{Name: "axes", Value: []int64{1}}
	for name, tt := range map[string]struct {
		text string
		want string // the ends and the axis, or a part of the error
	}{
		"class token": {two + "n = LayerNormalization(end2, w, w) 2,5,8\ny = Gather(n, i) 2,8",
			"end1 end2 1"},
		"mean, then norm": {two + "v = ReduceMean(end2) 2,1,8\ny = LayerNormalization(v, w, w) 2,1,8",
			"end1 end2 1"},
		"one block": {tokensOfSketch + block(1, "t") + "n = LayerNormalization(end1, w, w) 2,5,8\n" +
			"y = ReduceMean(n) 2,1,8", "end1 1"},
		"all tokens flattened": {two + "v = Reshape(end2, s) 2,40\ny = MatMul(v, w) 2,3", "mixes tokens"},
		"positions added": {two + "v = Mul(end2, places) 2,5,8\ny = ReduceMean(v) 2,1,8",
			"or tells them apart"},
		"an answer for each": {two + "y = MatMul(end2, w) 2,5,3", "an answer for each token"},
		"another last block": {two + "v = Relu(end2) 2,5,8\na3 = Softmax(v) 2,5,5\n" +
			"y = MatMul(a3, end2) 2,5,8", "isn't certain"},
	} {
		t.Run(name, func(t *testing.T) {
			g := sketch(t, tt.text)
			a := Attention{Tokens: 5}
			for _, n := range g.Proto.Graph.Node {
				switch n.OpType {
				case "Softmax":
					a.Blocks = append(a.Blocks, n.Output[0])
				case "ReduceMean":
					n.Attribute = onnx.NewNode("", "", nil, nil, mean).Attribute
				case "Gather":
					n.Attribute = ints("axis")
					one := int64(1)
					n.Attribute[0].I, n.Attribute[0].Type = &one, 2
				}
			}
			g.Types["places"] = onnx.Type{Elem: 1, Shape: []int{5, 8}}
			h, err := FindHead(g, a)
			got := fmt.Sprint(strings.Join(h.Ends, " "), " ", h.Axis)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestQueryKey holds that queries and keys are found through scales and masks, and not where several products
// are added.
func TestQueryKey(t *testing.T) {
	const both = "c = Conv(x, w) 2,8,2,2\nq = Reshape(c, s) 2,2,4,4\nk = Reshape(c, s) 2,2,4,4\n" +
		"d = MatMul(q, k) 2,2,4,4\n"
	for text, want := range map[string]string{
		both + "y = Softmax(d) 2,2,4,4": "q k",
		both + "e = Mul(d, w) 2,2,4,4\nf = Add(mask, e) 2,2,4,4\ny = Softmax(f) 2,2,4,4": "q k",
		both + "e = MatMul(k, q) 2,2,4,4\nf = Add(d, e) 2,2,4,4\ny = Softmax(f) 2,2,4,4": "",
		"c = Conv(x, w) 2,8,2,2\nq = Reshape(c, s) 2,2,4,4\ny = Softmax(q) 2,2,4,4":      "",
		both + "e = Tanh(d) 2,2,4,4\ny = Softmax(e) 2,2,4,4":                             "",
	} {
		q, k, err := QueryKey(sketch(t, text), "y")
		if got := strings.TrimSpace(q + " " + k); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestPlaces holds which grid so many tokens have, and when it is certain.
func TestPlaces(t *testing.T) {
	for name, tt := range map[string]struct {
		text         string
		tokens       int
		stated, want string
		sure         bool
	}{
		"the layer's": {"y = Conv(x, w) 2,8,4,4", 21, "", "5+4x4", true},
		// 2 × 2 patches behind 5 others are as many as 3 × 3.
		"two grids":             {"y = Conv(x, w) 2,8,2,2", 9, "", "0+3x3", false},
		"two grids, one stated": {"y = Conv(x, w) 2,8,2,2", 9, "5+2x2", "5+2x2", true},
		// 8 × 2 patches are as many as 4 × 4.
		"a long grid":           {"y = Conv(x, w) 2,8,8,2", 17, "", "1+4x4", false},
		"a long grid, stated":   {"y = Conv(x, w) 2,8,8,2", 17, "1+8x2", "1+8x2", true},
		"no layer":              {"y = MatMul(x, w) 2,17,8", 17, "", "1+4x4", true},
		"too many":              {"y = MatMul(x, w) 2,32,8", 32, "", "7+5x5", false},
		"stated others":         {"y = MatMul(x, w) 2,32,8", 32, "1+4x4", "7+5x5", false},
		"more than are guessed": {"y = MatMul(x, w) 2,34,8", 34, "18+4x4", "18+4x4", true},
	} {
		g := sketch(t, tt.text)
		if err := g.Tokens.UnmarshalText([]byte(tt.stated)); err != nil {
			t.Fatal(err)
		}
		got, sure := Places(g.Tokens, tt.tokens), SureGrid(g, tt.tokens)
		if got.String() != tt.want || sure != tt.sure {
			t.Errorf("%s: %v, %t, want %v, %t", name, got, sure, tt.want, tt.sure)
		}
	}
	long := sketch(t, "y = MatMul(x, w) 2,17,8")
	long.Types["x"] = onnx.Type{Elem: 1, Shape: []int{2, 3, 32, 8}}
	if SureGrid(long, 17) {
		t.Error("17 tokens of an image that isn't square are taken for 4 × 4 patches and a token")
	}
}
