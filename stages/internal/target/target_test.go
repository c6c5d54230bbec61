package target

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// classifier has 5 classes; several has boxes, a segmentation and an embedding.
var (
	classifier = Model{Outputs: []modelfile.Output{{Name: "logits", Shape: []int{5}}}, Answer: "logits",
		Classes: 5, Names: []string{"cat", "dog", "tench", "goldfish", "owl"}, Height: 4, Width: 4}
	several = Model{Outputs: []modelfile.Output{
		{Name: "boxes", Shape: []int{3, 4}}, {Name: "scores", Shape: []int{3, 2}},
		{Name: "map", Shape: []int{2, 2, 2}}, {Name: "Identity:0", Shape: []int{3}},
	}, Height: 4, Width: 4, Vectors: []float32{1, 0, 0, 0, 2, 0}, VectorsShape: []int{2, 3}}
)

// bound binds a text.
func bound(text string, m Model) (*Head, error) {
	e, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return e.Bind(m)
}

// TestValues holds values against numbers computed by hand.
func TestValues(t *testing.T) {
	row := map[string][]float32{
		"logits":     {1, 4, -2, 3, 0.5},
		"boxes":      {0, 0, 2, 2, 1, 1, 3, 3, 0, 0, 4, 4},
		"scores":     {1, 0, 0, 3, 2, 2},
		"map":        {1, 5, 2, 2, 3, 4, 1, 7},
		"Identity:0": {3, 4, 0},
	}
	tests := []struct {
		text string
		m    Model
		want float64
	}{
		{"logits[3]", classifier, 3},
		{"logits[:, -1]", classifier, 0.5},
		{"output[predicted] - output[predicted:2]", classifier, 1},
		{"output[label] * 2", classifier, -4},
		{`output["dog"] / output["owl"]`, classifier, 8},
		{"sum(output) - max(output) * 0.5", classifier, 6.5 - 2},
		{"mean(output[1:4])", classifier, 5. / 3},
		{"logsumexp(output)", classifier, math.Log(math.E + math.Exp(4) + math.Exp(-2) + math.Exp(3) +
			math.Exp(.5))},
		{"softmax(output)[1]", classifier, math.Exp(4) / (math.E + math.Exp(4) + math.Exp(-2) + math.Exp(3) +
			math.Exp(.5))},
		{"contrast(output, 1)", classifier, 4 - 2.5/4},
		{"log-odds(output, 1)", classifier, 4 - math.Log(math.E+math.Exp(-2)+math.Exp(3)+math.Exp(.5))},
		{"finer(output, 0, k=2)", classifier, 1 - 0.6*(0.5+3)/2},
		{"multi-label", classifier, 8.5},
		{"output[1] * mean(mask)", classifier, 1},
		{"boxes[2, 3]", several, 4},
		{"iou(boxes, boxes[0])[1]", several, 1. / 7},
		{`iou(boxes, boxes[0], format="cxcywh")[1]`, several,
			1.5 * 1.5 / (4 + 9 - 1.5*1.5)}, // [−1,1]² and [−0.5,2.5]²
		{"sum(map[1] * frozen(argmax(map, 0) == 1))", several, 3 + 7},
		{"segmentation(0, map)", several, 5 + 2},
		{`cosine("Identity:0", vectors)[1]`, several, 4. / 5},
		{`dot("Identity:0", vectors[0])`, several, 3},
		{"detection(boxes, scores, 0)", several, 1},
		{"detection(boxes[1:], scores[1:], frozen(argmax(scores[:, 1]) - 1))", several, 1},
		{"sum(relu(map - 2), 0, 1)[1] + min(map)", several, 3 + 2 + 5 + 1},
		{"-(map[0, 0, 1])", several, -5},
		{"except(output, 1)[1]", classifier, -2},
		{"sqrt(abs(output[2]) + exp(log(2)))", classifier, 2},
	}
	for _, tt := range tests {
		h, err := bound(tt.text, tt.m)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		var of Original
		for _, o := range h.Outputs {
			of.Row = append(of.Row, row[o.Name]...)
		}
		of.Label = 2
		of.Mask = []float64{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		params, err := h.Freeze(of)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := h.Value(of.Row, params); !(math.Abs(got-tt.want) < 1e-6) {
			t.Errorf("%s is %v, want %v", tt.text, got, tt.want)
		}
		if got := h.Value(of.Row, params); got < h.Low || got > h.High {
			t.Errorf("%s is %v, outside its bounds %v and %v", tt.text, got, h.Low, h.High)
		}
	}
}

// TestRefusals holds that each wrong expression in testdata/wrong.txt is refused at its place, for its cause,
// with a suggestion where there is one.
func TestRefusals(t *testing.T) {
	b, err := os.ReadFile("testdata/wrong.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(strings.TrimSpace(string(b)), "\n\n")
	if len(cases) < 60 {
		t.Errorf("%d wrong expressions", len(cases))
	}
	var out []string
	for _, c := range cases {
		text, want, _ := strings.Cut(c, "\n")
		m := classifier
		if rest, ok := strings.CutPrefix(text, "several: "); ok {
			text, m = rest, several
		}
		_, err := bound(text, m)
		var at *Error
		switch {
		case err == nil:
			t.Errorf("%s was taken", text)
			continue
		case !errors.As(err, &at):
			t.Errorf("%s: no place: %v", text, err)
		case err.Error() != want:
			t.Errorf("%s:\n got %s\nwant %s", text, err, want)
		}
		first, _, _ := strings.Cut(c, "\n")
		out = append(out, first+"\n"+err.Error())
	}
	if os.Getenv("UPDATE") != "" {
		_ = os.WriteFile("testdata/wrong.txt", []byte(strings.Join(out, "\n\n")+"\n"), 0o666)
	}
}

// TestPresets holds that every preset is an expression, with the arguments that it needs.
func TestPresets(t *testing.T) {
	for _, p := range presets {
		text := p.name
		var args []string
		for _, a := range p.args {
			if name, _, has := strings.Cut(a, "="); !has {
				args = append(args, map[string]string{"x": "output", "boxes": "output[:, :4]",
					"scores": "output[:, 4:]", "class": "1"}[name])
			}
		}
		if args != nil {
			text += "(" + strings.Join(args, ", ") + ")"
		}
		fits := false
		for _, shape := range [][]int{{5}, {1}, {3, 6}, {4, 2, 2}} {
			m := classifier
			m.Outputs = []modelfile.Output{{Name: "logits", Shape: shape}}
			m.Vectors, m.VectorsShape = []float32{1, 2, 3, 4, 5}, []int{1, 5}
			if len(shape) > 1 {
				m.Classes = 0
			}
			_, err := bound(text, m)
			fits = fits || err == nil
			if err != nil {
				t.Logf("%s of %v: %v", text, shape, err)
			}
		}
		if !fits {
			t.Errorf("%s fits no model", text)
		}
	}
}

// TestIs holds what is an expression, and what a class or the difference of two.
func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"predicted": false, "label": false, "7-3": false, "predicted-predicted:2": false, "tench": false,
		"crane (bird)": false, "tench - goldfish": false, "potter's wheel": false,
		"logits[3]": true, "sum(logits)": true, "output": true, "(a - b)": true, `"Identity:0"[1]`: true,
		"regression": true, "zero-shot": true, "-(output[0])": true,
	} {
		if Is(text) != want {
			t.Errorf("Is(%q) is %t", text, !want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"logits[:, 3]", "sum(a * frozen(b == 1)) / 2", `"x"[1:2, predicted:2]`,
		"detection(boxes, scores, row=1)", "-(-x)", "1e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			if !errors.As(err, new(*Error)) {
				t.Fatalf("no place: %v", err)
			}
			return
		}
		for _, m := range []Model{classifier, several} {
			if h, err := e.Bind(m); err == nil && h.Width() < 1<<16 && h.Size() > 0 {
				of := Original{Row: make([]float32, h.Size()), Other: make([]float32, h.Size()),
					Mask: make([]float64, 16)}
				if params, err := h.Freeze(of); err == nil {
					h.Value(of.Row, params)
				}
			}
		}
	})
}
