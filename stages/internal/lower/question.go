package lower

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A Question specifies a derivative: of which number, with respect to which value, and by which rules.
type Question struct {
	// Layer is the value of the graph with respect to which the derivative is taken; "" is the normalised
	// image.
	Layer string
	// Rules is the policy of the backward pass.
	Rules relevance.Policy
	// Probability differentiates the target's probability rather than its logit.
	Probability bool
	// Start is the start of the backward pass.
	Start Start
	// Counts names the input that says how much each class counts at the start of the backward pass; "" is
	// the explained classes.
	Counts string
}

// A Start is the start of a backward pass.
type Start string

const (
	// StartDerivative is the derivative of the explained number with respect to the model's answer. It is the
	// zero Start.
	StartDerivative Start = ""
	// StartOnes is how much each class counts, at the logits: 1 at the target. For a probability it is the
	// probability's derivative with respect to the logits.
	StartOnes Start = "ones"
	// StartLogits is StartOnes times the logits.
	StartLogits Start = "logits"
	// StartTarget is StartOnes times the logit of the class that counts 1.
	StartTarget Start = "target"
)

// A Summand is a function of derivatives whose sum is computed.
type Summand string

const (
	Plain     Summand = "derivative"
	Magnitude Summand = "magnitude"
	Square    Summand = "square"
)

// String distinguishes questions of a model.
func (q Question) String() string {
	return fmt.Sprintf("%q by %s, probability %t, start %q, counts %q", q.Layer, q.Rules.Name, q.Probability,
		q.Start, q.Counts)
}

// CountsInput returns the name of the input that says how much each class counts.
func (q Question) CountsInput() string {
	if q.Counts == "" {
		return "targets"
	}
	return "counts of " + q.Counts
}

// ImagesInput is the input of a batch of images.
func ImagesInput(s Shapes) []IO { return []IO{{"images", s.ImageShape(s.Batch)}} }

// Images emits the images of ImagesInput.
func Images(*onnx.Fragment) string { return prefix + "images" }

// Read returns a function that emits an input.
func Read(name string) func(*onnx.Fragment) string {
	return func(*onnx.Fragment) string { return prefix + name }
}

// Shapes are the shapes around a question, from which the shapes of inputs are derived.
type Shapes struct {
	Batch        int
	Image, Layer []int // of one image, and of the layer's value for it
}

// ImageShape is the shape of this many images.
func (s Shapes) ImageShape(rows int) []int { return append([]int{rows}, s.Image...) }

// LayerShape is the shape of the layer's value for this many images.
func (s Shapes) LayerShape(rows int) []int { return append([]int{rows}, s.Layer...) }

// ColumnShape is the shape of one number a row, which broadcasts over the layer.
func (s Shapes) ColumnShape() []int {
	shape := []int{s.Batch}
	for range s.Layer {
		shape = append(shape, 1)
	}
	return shape
}
