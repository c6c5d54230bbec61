// Package target is the language of targets: expressions of a model's outputs whose value, one number an
// image, is explained by methods and recorded along curves.
//
//	logits[3]                                           a class, one pixel's logit, a row of boxes
//	sum(logits[3] * frozen(argmax(logits, 0) == 3))     a segmented class, where it was predicted
//	cosine(output, other(output))                       how similar the embeddings of two images are
//	detection(output[:, :4], output[:, 4:])             the similarity of D-RISE
//
// An expression is parsed (parse.go) into nodes; [Expression.Bind] gives each of them a type (bind.go) by the
// outputs' shapes, and makes a [Head] of them: a function of the model's outputs and of parameters, which are
// what the expression freezes at the original image (freeze.go). A Head has a value in double precision
// (array.go) and is emitted as nodes of a graph (emit.go), whose derivative is a backward pass's start.
// Operators are files of their own, op_*.go, listed in operators.go; words such as label are in words.go, and
// presets, which are expressions themselves, in presets.go.
package target

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// Language is the version of what expressions mean. A change that moves any value raises it: it is the
// version of model/target, and part of what that makes, so that everything which reads the value is computed
// again.
const Language = 1

// An Expression is a target as it is written.
type Expression struct {
	Text string
	root *node
}

// Reads reports whether an expression has a word, such as vectors.
func (e Expression) Reads(word string) bool {
	found := false
	e.root.walk(func(n *node) { found = found || n.name() == word })
	return found
}

// An Error is an error in an expression. Column counts its characters from 1.
type Error struct {
	Text    string
	Column  int
	Message string
	Hint    string // how to write it, or ""
}

// Error returns the message after the place, and what stands there.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "column %d", e.Column)
	if at := e.from(); at != "" {
		fmt.Fprintf(&b, ", at %q", at)
	}
	b.WriteString(": " + e.Message)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// from returns the beginning of what stands at the column.
func (e *Error) from() string {
	rest := []rune(e.Text)
	rest = rest[min(e.Column-1, len(rest)):]
	const most = 12
	if len(rest) > most {
		return string(rest[:most]) + "…"
	}
	return string(rest)
}

// errorAt returns an error at a byte of a text.
func errorAt(text string, at int, hint, format string, args ...any) error {
	return &Error{text, utf8.RuneCountInString(text[:at]) + 1, fmt.Sprintf(format, args...), hint}
}

// Is reports whether a text is an expression rather than a class, its name, or a difference of two: it calls
// or indexes something, begins with a parenthesis or a quoted name, or is a word that stands for an
// expression.
func Is(text string) bool {
	text = strings.TrimSpace(text)
	if text == answerWord || presetNamed(text) != nil || strings.HasPrefix(text, "(") ||
		strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "-(") {
		return true
	}
	for i, r := range text {
		if (r == '(' || r == '[') && i > 0 && isWord(rune(text[i-1])) {
			return true
		}
	}
	return false
}

func isWord(r rune) bool { return r == '_' || r == '"' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// A Model is what expressions are bound to.
type Model struct {
	Outputs []modelfile.Output
	// Answer is the name of the output that the word output stands for, "" if there are several.
	Answer string
	// Classes is the number of classes of Answer, 0 for a model without classes; Names are their names, if
	// they are known.
	Classes int
	Names   []string
	// Height and Width are those of the image, and so of the port masks.
	Height, Width int
	// Vectors is what the word vectors is, of the shape VectorsShape; nil if there is nothing.
	Vectors      []float32
	VectorsShape []int
}

// A Head is an expression bound to a model: a function of the model's outputs and of parameters.
type Head struct {
	Text string
	// Outputs are the outputs that the expression reads. A row of the model's answers is their elements, one
	// output after the other.
	Outputs []modelfile.Output
	// Needs says what freezing reads.
	Needs Needs
	// Low and High bound the value: −∞ and ∞ if nothing does.
	Low, High float64
	// Linear reports whether the value is a linear function of the outputs plus a constant.
	Linear bool

	root    *term
	frozen  []*term
	width   int // of the parameters
	offsets map[string]int
}

// Needs says which ports an expression reads.
type Needs struct{ Label, Mask, Other bool }

// Width returns the number of parameters.
func (h *Head) Width() int { return h.width }

// Size returns the number of elements of a row of the model's answers.
func (h *Head) Size() int {
	n := 0
	for _, o := range h.Outputs {
		n += size(o.Shape)
	}
	return n
}

// Ports returns the names of the ports that freezing reads.
func (n Needs) Ports() []string {
	var ports []string
	for _, p := range []struct {
		needed bool
		name   string
	}{{n.Label, "labels"}, {n.Mask, "masks"}, {n.Other, "other"}} {
		if p.needed {
			ports = append(ports, p.name)
		}
	}
	return ports
}

// size returns the number of elements of a shape.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
