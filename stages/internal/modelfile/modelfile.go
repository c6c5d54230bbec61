// Package modelfile is the payload of a port of type Model: an ONNX model, or a rewrite of another model,
// with the specification that is needed to feed it images and to read its output (modelfile.go).
// normalise.go turns an image into the model's input, by one of the presets in preset.go or by the user's
// numbers; text.go does so with the tokens of a text.
package modelfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Payloads begin with one of these: a model with its ONNX file, or a rewritten one. The digit is the
// version.
const (
	magic   = "runexp model 1\n"
	rewrote = "runexp rewritten model 1\n"
)

// A Model is a model and its [Spec]: an ONNX model with all its weights inside, or a [Rewrite] of another.
type Model struct {
	Spec    Spec
	ONNX    []byte
	Rewrite *Rewrite
}

// A Rewrite describes a model that a stage derives from another model, the Base. It contains no weights,
// only the digest of the Base's payload.
type Rewrite struct {
	Base stages.Digest   `json:"base"`
	Name string          `json:"name"` // of the stage, such as model/difull
	With json.RawMessage `json:"with"` // its parameters
}

// A Spec specifies a model's input and output.
type Spec struct {
	Input  string `json:"input"`  // the ONNX input for the images
	Output string `json:"output"` // the value with the class scores; it needn't be an output of the graph

	// Height, Width and Channels are the size of the images; Channels is 1 or 3.
	Height   int `json:"height"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
	Classes  int `json:"classes"`

	// Batch is the only batch size that the model accepts, 0 if it accepts any.
	Batch int `json:"batch"`

	// Layout is that of the ONNX input: NCHW or NHWC, or of signals, which are images of one row, NCT, NTC or
	// NT. Order is RGB or BGR, as the input expects it.
	Layout string `json:"layout"`
	Order  string `json:"order"`

	// A pixel value v in [0,1] is normalised to (v·Scale − Mean)/Std, with one Mean and Std for every
	// channel, in the order red, green, blue.
	Scale float64   `json:"scale"`
	Mean  []float64 `json:"mean"`
	Std   []float64 `json:"std"`

	// Probabilities reports that the outputs are probabilities, which sum to 1 unless each class has its own;
	// otherwise they are logits.
	Probabilities bool `json:"probabilities"`

	// Independent reports that each class has a probability of its own, the sigmoid of its logit; otherwise
	// probabilities are the softmax of all logits.
	Independent bool `json:"independent,omitempty"`

	// Sides reports that the model's file returns one number an image, from which Output is made: a value
	// for the negative class and one for the positive class.
	Sides bool `json:"sides,omitempty"`

	// Heads is the number of heads of a model that has several, else 0. The classes are those of the heads,
	// one head after the other, and the probabilities of each head sum to 1.
	Heads int `json:"heads,omitempty"`

	// Middle and Final name the middle and the final layer of a rewritten model, or are [NoLayer]; "" for a
	// model whose graph shows them.
	Middle string `json:"middle,omitempty"`
	Final  string `json:"final,omitempty"`

	// Tokens are how a vision transformer's tokens lie in the image, if that is stated.
	Tokens onnx.Tokens `json:"tokens,omitzero"`

	// Text is set for a model that takes texts: its images have [TextChannels] channels, one row, and as many
	// columns as the longest text has tokens.
	Text *Text `json:"text,omitempty"`

	// Outputs are the outputs of a model without classes, whose Classes is 0 and whose Output is "".
	Outputs []Output `json:"outputs,omitempty"`
}

// An Output is an output of a model without classes.
type Output struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"` // of one image
}

// NoLayer stands for a layer that a rewritten model doesn't have: its values aren't values of whole images.
const NoLayer = "none"

// String returns the name and the shape of one image's numbers, such as "boxes [8400 4]".
func (o Output) String() string { return fmt.Sprintf("%s %v", o.Name, o.Shape) }

// Answers returns the values that the model is run for: the one with the classes, or all outputs of a model
// without classes.
func (s Spec) Answers() []string {
	if len(s.Outputs) == 0 {
		return []string{s.Output}
	}
	var names []string
	for _, o := range s.Outputs {
		names = append(names, o.Name)
	}
	return names
}

// InputShape returns the shape of the model's input for a batch.
func (s Spec) InputShape(batch int) []int {
	switch s.Layout {
	case NHWC:
		return []int{batch, s.Height, s.Width, s.Channels}
	case NCT:
		return []int{batch, s.Channels, s.Width}
	case NTC:
		return []int{batch, s.Width, s.Channels}
	case NT:
		return []int{batch, s.Width}
	}
	return []int{batch, s.Channels, s.Height, s.Width}
}

// Signal reports whether the model takes signals, [channels, time].
func (s Spec) Signal() bool { return s.Layout == NCT || s.Layout == NTC || s.Layout == NT }

// ChannelsLast reports whether the model's input has the channels last.
func (s Spec) ChannelsLast() bool { return s.Layout == NHWC || s.Layout == NTC }

// Broadcast returns the shape in which a number for each channel broadcasts to the model's input.
func (s Spec) Broadcast() []int {
	switch s.Layout {
	case NHWC:
		return []int{1, 1, 1, s.Channels}
	case NCT:
		return []int{1, s.Channels, 1}
	case NTC:
		return []int{1, 1, s.Channels}
	case NT:
		return []int{1, 1}
	}
	return []int{1, s.Channels, 1, 1}
}

// PerHead returns the number of classes of a head: all classes, unless the model has several heads.
func (s Spec) PerHead() int { return s.Classes / max(1, s.Heads) }

// Values of Spec.Layout and Spec.Order.
const (
	NCHW = "nchw"
	NHWC = "nhwc"
	NCT  = "nct"
	NTC  = "ntc"
	NT   = "nt"
	RGB  = "rgb"
	BGR  = "bgr"
)

// Encode returns the payload that holds m.
func (m Model) Encode() ([]byte, error) {
	if m.Rewrite != nil {
		b, err := json.Marshal(rewritten{m.Spec, *m.Rewrite})
		return append([]byte(rewrote), b...), err
	}
	spec, err := json.Marshal(m.Spec)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(magic)+4+len(spec)+len(m.ONNX))
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(spec)))
	b = append(b, spec...)
	return append(b, m.ONNX...), nil
}

// A rewritten is the payload of a rewritten model, after its first bytes.
type rewritten struct {
	Spec    Spec    `json:"spec"`
	Rewrite Rewrite `json:"rewrite"`
}

// Decode reads a payload written by Encode. The result shares its memory.
func Decode(b []byte) (Model, error) {
	var m Model
	if rest, ok := bytes.CutPrefix(b, []byte(rewrote)); ok {
		var r rewritten
		if err := json.Unmarshal(rest, &r); err != nil {
			return m, fmt.Errorf("a damaged model: %w", err)
		}
		return Model{Spec: r.Spec, Rewrite: &r.Rewrite}, r.Spec.check()
	}
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(rest) < 4 {
		return m, fmt.Errorf("not a model")
	}
	n := binary.LittleEndian.Uint32(rest)
	if rest = rest[4:]; uint64(n) > uint64(len(rest)) {
		return m, fmt.Errorf("a model that is cut off")
	}
	if err := json.Unmarshal(rest[:n], &m.Spec); err != nil {
		return m, fmt.Errorf("a damaged model: %w", err)
	}
	m.ONNX = rest[n:]
	return m, m.Spec.check()
}

// bad reports whether an output is impossible.
func (o Output) bad() bool {
	return o.Name == "" || slices.ContainsFunc(o.Shape, func(d int) bool { return d <= 0 })
}

// check returns an error for impossible specifications, so that users of a Spec needn't check.
func (s Spec) check() error {
	switch {
	case s.Height <= 0 || s.Width <= 0 || s.Batch < 0 || s.Classes < 0 ||
		s.Classes == 0 && len(s.Outputs) == 0:
		return fmt.Errorf("a model of %d×%d pixels and %d classes is impossible", s.Height, s.Width,
			s.Classes)
	case len(s.Outputs) > 0:
		return s.checkOutputs()
	case s.Heads < 0 || s.Heads > 0 && s.Classes%s.Heads != 0:
		return fmt.Errorf("a model of %d classes in %d heads is impossible", s.Classes, s.Heads)
	}
	return s.checkInput()
}

// checkOutputs checks a model without classes.
func (s Spec) checkOutputs() error {
	if s.Classes != 0 || s.Output != "" || slices.ContainsFunc(s.Outputs, Output.bad) {
		return fmt.Errorf("a model of %d classes with the outputs %v is impossible", s.Classes, s.Outputs)
	}
	return s.checkInput()
}

// checkInput checks what the model takes.
func (s Spec) checkInput() error {
	switch {
	case s.Signal() && s.Height != 1 || s.Layout == NT && s.Channels != 1:
		return fmt.Errorf("a model of signals of %d rows and %d channels is impossible", s.Height, s.Channels)
	case s.Channels != 1 && s.Channels != 3:
		return fmt.Errorf("a model of %d channels takes no images", s.Channels)
	case len(s.Mean) != s.Channels || len(s.Std) != s.Channels:
		return fmt.Errorf("a model of %d channels has %d means and %d deviations", s.Channels, len(s.Mean),
			len(s.Std))
	}
	return nil
}
