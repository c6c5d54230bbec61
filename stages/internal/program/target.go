package program

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
)

// A Target is the class that is explained.
type Target struct {
	Class int
	// Minus is the class whose response is subtracted, -1 for none.
	Minus int
	// Frozen are the parameters of an expression that is explained instead, not nil then.
	Frozen []float32
}

// TargetOf reads a payload of targets or of labels.
func TargetOf(b []byte, classes int) (Target, error) {
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return Target{}, err
	}
	v := t.Int64s()
	if len(v) != 1 && len(v) != 2 {
		return Target{}, fmt.Errorf("a target of shape %v is neither one class nor two", t.Shape)
	}
	for _, c := range v {
		if c < 0 || c >= int64(classes) {
			return Target{}, fmt.Errorf("class %d is not one of the model's %d", c, classes)
		}
	}
	if len(v) == 2 {
		return Target{Class: int(v[0]), Minus: int(v[1])}, nil
	}
	return Target{Class: int(v[0]), Minus: -1}, nil
}

// Target reads a payload of targets of the net. A third number is the head whose class is meant: mosaics say
// which cell is explained. A net without heads has one, which sees everything.
func (n *Net) Target(b []byte) (Target, error) {
	d, err := stages.DecodeTensor(b)
	if err != nil {
		return Target{}, err
	}
	if n.Head != nil {
		return n.frozen(d)
	}
	v := d.Int64s()
	if len(v) != 3 {
		if n.Heads > 0 {
			return Target{}, fmt.Errorf("the model has %d heads, one for each cell of a grid, and the "+
				"target names none: set heads: true of the mosaic", n.Heads)
		}
		return TargetOf(b, n.Classes)
	}
	classes := v[:2]
	if v[1] < 0 {
		classes = v[:1]
	}
	t, err := TargetOf(stages.NewTensor(classes, len(classes)).Encode(), n.PerHead())
	switch {
	case err != nil || n.Heads == 0:
		return t, err
	case v[2] < 0 || v[2] >= int64(n.Heads):
		return t, fmt.Errorf("head %d is not one of the model's %d", v[2], n.Heads)
	}
	first := int(v[2]) * n.PerHead()
	t.Class += first
	if t.Minus >= 0 {
		t.Minus += first
	}
	return t, nil
}

// frozen reads a payload of targets where an expression is explained.
func (n *Net) frozen(d stages.Tensor) (Target, error) {
	if d.DType != stages.F32 || len(d.Shape) != 1 || d.Shape[0] != n.Head.Width() {
		return Target{}, fmt.Errorf("the target isn't of the expression %s", n.Head.Text)
	}
	return Target{Class: -1, Minus: -1, Frozen: append([]float32{}, d.Float32s()...)}, nil
}

// NoClass returns an error where an expression is explained, by a method that compares a class with others.
func (t Target) NoClass() error {
	if t.Frozen == nil {
		return nil
	}
	return stages.BadField("target", "target: the method compares a class with the others, and the target "+
		"is an expression, not a class")
}

// Rivals returns the part of a row that has a number a class which is of the classes that compete with a
// target, those of its head, and the target in it. It clears the rest.
func (n *Net) Rivals(row []float32, t Target) ([]float32, Target) {
	first, size := n.First(t.Class), n.PerHead()
	clear(row[:first])
	clear(row[first+size:])
	t.Class -= first
	if t.Minus >= 0 {
		t.Minus -= first
	}
	return row[first : first+size], t
}

// First returns the first class of a class's head.
func (n *Net) First(class int) int { return class / n.PerHead() * n.PerHead() }

// Probability returns the target's probability in a row of the model's answer, or the difference of two; the
// value of an expression.
func (n *Net) Probability(row []float32, t Target) float64 {
	if n.Head != nil {
		return n.Head.Value(row, t.Frozen)
	}
	p := n.probability(row, t.Class)
	if t.Minus >= 0 {
		p -= n.probability(row, t.Minus)
	}
	return p
}

// Logit returns the target's logit, or the difference of two. A model that returns probabilities has their
// logarithms for logits. An expression has its value.
func (n *Net) Logit(row []float32, t Target) float64 {
	if n.Head != nil {
		return n.Head.Value(row, t.Frozen)
	}
	l := n.logit(row, t.Class)
	if t.Minus >= 0 {
		l -= n.logit(row, t.Minus)
	}
	return l
}

func (n *Net) probability(row []float32, class int) float64 {
	if n.Probabilities {
		return float64(row[class])
	}
	if n.Independent {
		// The smaller of p and 1 − p keeps its digits, as exp(z) does of z < 0.
		if z := float64(row[class]); z < 0 {
			return math.Exp(z) / (1 + math.Exp(z))
		}
		return 1 / (1 + math.Exp(-float64(row[class])))
	}
	first := n.First(class)
	row, class = row[first:first+n.PerHead()], class-first
	largest := math.Inf(-1)
	for _, v := range row {
		largest = math.Max(largest, float64(v))
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - largest)
	}
	return math.Exp(float64(row[class])-largest) / sum
}

func (n *Net) logit(row []float32, class int) float64 {
	if n.Probabilities {
		return math.Log(float64(row[class]))
	}
	return float64(row[class])
}

// Label returns the label that the model predicts: the class with the largest answer of those of a target's
// head.
func (n *Net) Label(row []float32, t Target) int {
	first := n.First(t.Class)
	return first + Predicted(row[first:first+n.PerHead()])
}

// Predicted returns the class with the largest answer, the first of equal ones.
func Predicted(row []float32) int {
	best := 0
	for i, v := range row {
		if v > row[best] {
			best = i
		}
	}
	return best
}

// write writes how much each class counts for the target, or an expression's parameters.
func (t Target) write(classes []float32) {
	clear(classes)
	if t.Frozen != nil {
		copy(classes, t.Frozen)
		return
	}
	classes[t.Class] = 1
	if t.Minus >= 0 {
		classes[t.Minus] = -1
	}
}
