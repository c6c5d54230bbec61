// Package lower makes programs of models: it lowers an ONNX file, pass by pass, to the ONNX model that a
// session runs.
//
// The path of the data. [Graph] lowers a file to the graph from which all programs of a model and a batch are
// made, the prepared graph: nodes in order, single precision, one opset, every type and shape known.
// [Program] lowers that graph, or for a verbatim program the file itself, to a program for a [Question]
// (question.go): nodes in front make the model's input of what a stage varies, nodes behind return what the
// stage reads, backward passes among them. Both run the rows of one table, passes in passes.go, that are for
// their [Kind]; constraints there has the reason for each row's place. A pass is one file with the pass's
// name.
//
// The files in the order of the table: distinct_names, verbatim, interface.go (inputs and outputs),
// constant_branches, simplify, infer_shapes.go (both with detach_weights, which keeps large weights from ONNX
// Runtime meanwhile), emission_opset; channels_first, sides, fold_batchnorm, sink_gather, gemm_alpha,
// pad_channels; reference.go (of comparisons), layer, preprocess, answer; attention, backward.go (with seed,
// explain.go for expressions and formation.go for grafted heads), audit; batch_invariant.go and
// batch_invariant_*.go (a file for each family of operators); provider_forms; half_precision
// (with half_operators.go and min_cut.go); ort_workarounds. Passes that rewrite models without knowing their
// types are in package rewrite.
//
// survey.go describes a file before it is lowered, need.go computes the memory of a program, and resize.go
// infers the types of a graph again for images of another size.
package lower

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/target"
	"github.com/runexp/runexp/stages/ort"
)

// A Kind is a kind of target that a file or graph is lowered to. Every pass in the table is for some kinds.
type Kind uint

const (
	prepared    Kind = 1 << iota // the graph from which the kinds below Verbatim start
	Verbatim                     // the file as it is written, up to the answer
	Forward                      // the graph up to the answer
	Backward                     // the graph up to the answer, and backward passes from there
	Attention                    // the attention of a transformer's blocks, its derivatives and relevance
	Comparison                   // a backward pass by rules that compare the images with a reference
	ofReference                  // the part of a comparison that depends only on the reference
)

// A Source is a model from which programs are made.
type Source struct {
	modelfile.Spec
	File func() ([]byte, error)
	// Graph returns the result of [Graph] for a batch. The program may change it.
	Graph func(batch int) (*onnx.Graph, error)
	// Head is the expression that is explained, nil if classes are.
	Head *target.Head
	// AllOutputs has [Graph] keep the file's other outputs too; no program is made of such a graph.
	AllOutputs bool
}

// An IO is an input or an output of a program.
type IO struct {
	Name  string
	Shape []int
}

// In returns an IO.
func In(name string, shape ...int) IO { return IO{name, shape} }

// Value returns the name of the input or output in the graph.
func (v IO) Value() string { return prefix + v.Name }

const prefix = "runexp_"

// Answer is an output of every program, the model's answer [batch, classes].
const Answer = prefix + "answer"

// A Request specifies a program.
type Request struct {
	Kind     Kind
	Question            // of a Forward program only its Layer counts
	Also     []Question // further questions, each answered by its own backward pass

	// Inputs returns the program's inputs. The first is the explained classes [rows, classes], if anything
	// is explained.
	Inputs func(Shapes) []IO
	// Images emits the normalised images [batch or 1,C,H,W].
	Images func(*onnx.Fragment) string
	// Substitute, if set, emits the value that replaces the layer's value. Otherwise that is an output,
	// unless Sum is set.
	Substitute func(*onnx.Fragment) string

	// Watched are values of the file that a Verbatim program also returns: the shape, and the numbers.
	Watched []string

	AnswerOnly bool    // a Forward program returns only the answer
	Sum        Summand // adds up the derivatives of a batch into one
	// Times, if set, emits what each derivative of a sum is multiplied by first, of the layer's shape.
	Times    func(*onnx.Fragment) string
	Audit    bool     // accounts for the relevance at every node of the first backward pass
	Glances  []Glance // the outputs of an Attention program
	Official bool     // a Comparison uses the rules of the authors' code: see [relevance.Rescale]
	// a Comparison computes the part that depends only on the reference once, in a separate program
	Once bool

	// Standard means that other libraries run the program too: the nodes that passes emit are ONNX's own.
	Standard bool

	// Kernels compute the program; the zero value is a processor's, in float32.
	Kernels ort.Kernels
	// Unrun means that the program won't run: passes that can't return an error are left out.
	Unrun bool
	// KeepNodes means that the program won't run and is compared with others node by node: passes that
	// change nodes but no bits are left out.
	KeepNodes bool
}

// questions returns all questions of the request.
func (r Request) questions() []Question { return append([]Question{r.Question}, r.Also...) }

// derivatives reports whether all rules are derivatives, for which every pass that keeps the answer's bits
// is safe. Other rules examine the nodes themselves: they may divide by a value that contributes nothing.
func (r Request) derivatives() bool {
	return !slices.ContainsFunc(r.questions(), func(q Question) bool {
		return len(q.Rules.Cases) > 0 && (!q.Rules.Slopes || q.Rules.Grouped)
	})
}

// without returns the operators that backward passes avoid.
func (r Request) without() relevance.Without {
	out := relevance.Without{Indices: r.Kernels.NoIndices, Operators: r.Kernels.Lacks}
	if r.Standard {
		out.Operators = append(slices.Clone(out.Operators), "FusedMatMul")
	}
	return out
}

// A Signature describes the inputs and outputs of a program, and how a session loads it.
type Signature struct {
	Inputs  []IO
	Outputs []IO     // in addition to the model's output
	Echoes  []string // outputs that are copies of the input "images"
	// Backward is the number of backward passes for a forward pass.
	Backward int
	// Entries are the accounts that the last output sums up, if the program keeps any.
	Entries []relevance.Entry
	// Canonical means that the model's own nodes give the same bits in all canonical programs of a batch.
	Canonical bool
	// Disabled are fusions of ONNX Runtime that would change what the model computes.
	Disabled []string
}

// A Lowered is a program that can be loaded.
type Lowered struct {
	Signature
	Batch int
	Model *onnx.Model
	// Graph is the same model with its types; nil if the program is verbatim.
	Graph *onnx.Graph
	// Forward are the nodes of the forward pass, before batch_invariant rewrote some.
	Forward []*onnxpb.NodeProto
	// Halved says of a program in float16 what each node computes in.
	Halved []Halved
	// Reference is the program whose outputs are a Comparison's inputs from the third on.
	Reference *Lowered
}

// Graph lowers a model's file to the graph for a batch of this many images: simplified, in single
// precision, of opset [rewrite.Opset], every type and shape known. Its input is the model's own,
// [Spec.Input], in the model's layout and order; its output is [Spec.Output]. measured means that some
// shapes were measured on an image, and may depend on it.
func Graph(ctx context.Context, s Source, batch int) (g *onnx.Graph, measured bool, err error) {
	defer onnx.Sound(&err)
	if s.Batch > 0 && batch != s.Batch {
		return nil, false, fmt.Errorf("the model takes %d images at once, not %d", s.Batch, batch)
	}
	u, err := newUnit(ctx, s, batch, Request{Kind: prepared})
	if err != nil {
		return nil, false, err
	}
	if err := u.lower(); err != nil {
		return nil, false, err
	}
	g, err = onnx.NewGraph(u.model, u.types)
	if err == nil {
		g.Tokens = s.Tokens
	}
	if err == nil && s.Text != nil && g.Shape(s.Text.Embedding) != nil {
		g.Root = s.Text.Embedding
	}
	return g, u.measured, err
}

// Program lowers a model to a program.
func Program(ctx context.Context, s Source, batch int, r Request) (_ *Lowered, err error) {
	defer onnx.Sound(&err)
	rows := max(1, s.Batch) // a reference is a single image
	p, paired, err := program(ctx, s, batch, rows, r)
	if r.Kind == Comparison && !paired && rows != batch {
		// Values for a single image don't broadcast to values for a batch: the reference fills every row.
		p, _, err = program(ctx, s, batch, batch, r)
	}
	return p, err
}

// program lowers a model to a program for a batch and, if it is a comparison, one for that many rows of the
// reference. paired is false if the graphs of the two don't fit together.
func program(ctx context.Context, s Source, batch, rows int, r Request) (p *Lowered, paired bool, err error) {
	u, err := newUnit(ctx, s, batch, r)
	if err != nil {
		return nil, true, err
	}
	if r.Kind == Comparison {
		r.Kind, r.Inputs, r.Images = ofReference, referenceInputs, referenceImage
		if u.reference, err = newUnit(ctx, s, rows, r); err != nil {
			return nil, true, err
		}
	}
	if err := u.lower(); err != nil {
		return nil, u.paired != nil, err
	}
	return u.lowered(), true, nil
}

// A unit is the input and output of passes: the model, and the facts that passes have found out about it.
type unit struct {
	modelfile.Spec
	Request
	ctx   context.Context // of the call that uses the unit
	batch int

	model *onnx.Model // until types are known
	types map[string]onnx.Type
	// measured means that some types were measured; again, that operators were converted, so that types
	// have to be inferred again.
	measured, again bool
	opset           int // of the file

	graph     *onnx.Graph // once types are known
	shapes    []Shapes    // around each question
	wrt       []string    // the value with respect to which each question differentiates
	explained string      // the value at which rules of comparisons start
	attention relevance.Attention
	inputs    []onnx.Value // declared inputs, and the first inputs of the signature
	forward   []*onnxpb.NodeProto
	halved    []Halved
	head      *target.Head        // that is explained, nil for classes
	counts    string              // then, its derivative with respect to the answer
	hidden    []*onnxpb.NodeProto // that compute it
	reference *unit               // of a comparison
	all       bool                // the prepared graph keeps all outputs of the file
	paired    map[string]string   // by value of the graph: the name of the reference's value in it
	signature Signature
}

// newUnit returns the unit with which a request begins.
func newUnit(ctx context.Context, s Source, batch int, r Request) (*unit, error) {
	u := &unit{Spec: s.Spec, Request: r, ctx: ctx, batch: batch, head: s.Head, all: s.AllOutputs}
	var err error
	if r.Kind&(prepared|Verbatim) != 0 {
		u.model, err = read(s.File)
		return u, err
	}
	u.signature.Canonical = true
	u.graph, err = s.Graph(batch)
	return u, err
}

// read reads a model's file.
func read(file func() ([]byte, error)) (*onnx.Model, error) {
	b, err := file()
	if err != nil {
		return nil, err
	}
	m, err := onnx.Parse(b)
	if err != nil {
		return nil, err
	}
	if m.Fresh(Answer) != Answer {
		return nil, taken(Answer)
	}
	return m, nil
}

// taken is the error of a model with a value that has one of our names.
func taken(name string) error { return fmt.Errorf("the model already has a value called %q", name) }

// lower runs the passes for the unit's kind. The reference of a comparison is lowered in step: each pass runs
// on both.
func (u *unit) lower() error {
	units := []*unit{u}
	if u.reference != nil {
		units = append(units, u.reference)
	}
	for _, p := range passes {
		for _, u := range units {
			if err := context.Cause(u.ctx); err != nil {
				return err
			}
			if p.kinds&u.Kind == 0 || p.when != nil && !p.when(u) {
				continue
			}
			if err := p.run(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// lowered returns the program in the unit.
func (u *unit) lowered() *Lowered {
	l := &Lowered{Signature: u.signature, Batch: u.batch, Model: u.model, Graph: u.graph, Forward: u.forward,
		Halved: u.halved}
	if u.graph != nil {
		l.Model = u.graph.Model
	}
	if u.reference != nil {
		l.Reference = u.reference.lowered()
	}
	return l
}

// inputShape returns the shape of the model's own input.
func (u *unit) inputShape() []int { return u.InputShape(u.batch) }

// rows returns the shape of the answer.
func (u *unit) rows() []int64 { return []int64{int64(u.batch), int64(u.Classes)} }

// noLayer is the error of a question whose layer doesn't exist.
func noLayer(layer, why string) error { return stages.BadField("layer", "layer %q: %s", layer, why) }

// current returns the model, with or without types.
func (u *unit) current() *onnx.Model {
	if u.graph != nil {
		return u.graph.Model
	}
	return u.model
}
