package target

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
)

// A Type is what is known of a value before any model runs.
type Type struct {
	Shape     []int   // of one image
	Low, High float64 // bounds of its elements
	Linear    bool    // in the outputs, plus a constant
	// Frozen means that the value is that for the original image, whatever replaces the image later.
	Frozen bool
}

// String returns a shape as people write it.
func (t Type) String() string {
	if len(t.Shape) == 0 {
		return "one number"
	}
	return "shape " + strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ", ")
}

// A term is a node with its type.
type term struct {
	*operator
	Type
	node  *node
	args  []*term
	ints  []int  // what the operator found out when it was bound, such as axes
	value *array // of a constant
	at    int    // where a frozen term's elements begin among the parameters, −1 for others
}

// An operator makes a value of others. Its file has its name.
type operator struct {
	name string
	form string // how it is called, and what it returns
	// names are those of the arguments, of which the first required ones must be given. Others are nil.
	names    []string
	required int
	values   int // of the arguments, if others are only read by bind
	// bind returns the type; the bounds, Linear and Frozen have defaults.
	bind func(b *binder, t *term) error
	eval func(t *term, args []array) (array, error)
	// emit returns the name of the value; nil if it has no derivative, so that it must be frozen.
	emit func(e *emitter, t *term, args []string) string
	// made, instead of eval and emit, makes the value with other operators.
	made func(k kit, t *term, args []value) value
	// word, instead of eval, reads the value from what is frozen.
	word func(s *state, t *term) (array, error)
}

// A binder gives types to the nodes of an expression.
type binder struct {
	Model
	text string
	head *Head
	bare bool // outside frozen(…)
}

// Bind makes a head of an expression: every node gets a type.
func (e Expression) Bind(m Model) (*Head, error) {
	b := &binder{Model: m, text: e.Text, head: &Head{Text: e.Text, offsets: map[string]int{}}, bare: true}
	root, err := b.bind(e.root)
	switch {
	case err != nil:
		return nil, err
	case len(root.Shape) > 0 && size(root.Shape) > 1:
		return nil, b.errorAt(e.root, "add sum(…), mean(…) or max(…), or an index",
			"the target is one number, and this is of %v", root.Type)
	case root.Frozen:
		return nil, b.errorAt(e.root, "", "nothing of this depends on the model's answer for another image")
	}
	h := b.head
	h.root, h.Low, h.High, h.Linear = root, root.Low, root.High, root.Linear
	for _, o := range h.Outputs {
		h.offsets[o.Name] = h.sizeBefore(o.Name)
	}
	h.place(root)
	return h, nil
}

// sizeBefore returns the number of elements of a row before an output's.
func (h *Head) sizeBefore(name string) int {
	n := 0
	for _, o := range h.Outputs {
		if o.Name == name {
			break
		}
		n += size(o.Shape)
	}
	return n
}

// place gives the outermost frozen terms their places among the parameters.
func (h *Head) place(t *term) {
	t.at = -1
	switch {
	case t.value != nil:
	case t.Frozen:
		t.at = h.width
		h.width += size(t.Shape)
		h.frozen = append(h.frozen, t)
	default:
		for _, a := range t.args {
			h.place(a)
		}
	}
}

func (b *binder) errorAt(n *node, hint, format string, args ...any) error {
	return errorAt(b.text, n.at, hint, format, args...)
}

func (b *binder) bind(n *node) (*term, error) {
	switch n.op {
	case opNumber:
		v := scalar(n.number)
		return &term{operator: &constant, node: n, value: &v, Type: Type{Low: n.number, High: n.number,
			Linear: true, Frozen: true}}, nil
	case opName:
		return b.output(n)
	case opWord:
		if w := wordNamed(n.text); w != nil {
			return w.bind(b, n)
		}
		return b.output(n)
	case opIndex:
		return b.index(n)
	case opSlice:
		return nil, b.errorAt(n, "", "a colon outside an index")
	}
	o := operatorNamed(n.op)
	if o == nil {
		return nil, b.unknown(n)
	}
	return b.call(o, n)
}

// unknown returns the error of a function that doesn't exist.
func (b *binder) unknown(n *node) error {
	hint := ""
	if o := b.find(n.op); o != nil || n.op == answerWord {
		hint = fmt.Sprintf("an output is indexed: %s[…]", n.op)
	} else if near := stages.Nearest(n.op, functionNames()); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	} else {
		hint = "there are " + strings.Join(functionNames(), ", ")
	}
	return b.errorAt(n, hint, "there is no function %s", n.op)
}

// output returns the output that a word names.
func (b *binder) output(n *node) (*term, error) {
	named := n.text
	if n.op == opWord && named == answerWord && b.find(named) == nil {
		if named = b.Answer; named == "" {
			return nil, b.errorAt(n, "", "the model has several outputs: %s", b.described())
		}
	}
	o := b.find(named)
	if o == nil {
		hint := "the model has " + b.described()
		if near := stages.Nearest(n.text, b.words()); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return nil, b.errorAt(n, hint, "the model has no output %q", n.text)
	}
	if !slices.ContainsFunc(b.head.Outputs, func(p modelfile.Output) bool { return p.Name == o.Name }) {
		b.head.Outputs = append(b.head.Outputs, *o)
	}
	return &term{operator: &read, node: &node{op: opName, at: n.at, text: o.Name},
		Type: Type{Shape: o.Shape, Low: math.Inf(-1), High: math.Inf(1), Linear: true}}, nil
}

func (b *binder) find(name string) *modelfile.Output {
	k := slices.IndexFunc(b.Outputs, func(o modelfile.Output) bool { return o.Name == name })
	if k < 0 {
		return nil
	}
	return &b.Outputs[k]
}

// described lists the outputs with their shapes.
func (b *binder) described() string {
	var all []string
	for _, o := range b.Outputs {
		all = append(all, Described(o))
	}
	return strings.Join(all, ", ")
}

// Described returns the name and the shape of an output, as in expressions.
func Described(o modelfile.Output) string {
	return written(o.Name) + " " + strings.ReplaceAll(fmt.Sprint(o.Shape), " ", ", ")
}

// words are the words that may stand where an output does.
func (b *binder) words() []string {
	out := []string{answerWord}
	for _, w := range words() {
		out = append(out, w.name)
	}
	for _, o := range b.Outputs {
		out = append(out, o.Name)
	}
	return out
}

// call binds a call of an operator.
func (b *binder) call(o *operator, n *node) (*term, error) {
	args, err := b.arguments(o, n)
	if err != nil {
		return nil, err
	}
	t := &term{operator: o, node: n, at: -1, Type: Type{Low: math.Inf(-1), High: math.Inf(1), Frozen: true}}
	was := b.bare
	b.bare = was && o != &frozen && o != &other
	for k, a := range args {
		var bound *term
		switch {
		case a == nil:
		case a.op == opName && o.names[k] == "format":
			bound = &term{operator: &constant, node: a} // a text, and no value
		default:
			if bound, err = b.bind(a); err != nil {
				return nil, err
			}
			t.Frozen = t.Frozen && bound.Frozen
		}
		t.args = append(t.args, bound)
	}
	b.bare = was
	if err := o.bind(b, t); err != nil {
		var at *Error
		if errors.As(err, &at) {
			return nil, err
		}
		return nil, b.errorAt(n, "", "%v", err)
	}
	if o.values > 0 {
		t.args = t.args[:o.values]
	}
	if b.bare && !t.Frozen && o.emit == nil && o.made == nil {
		return nil, b.errorAt(n, "write frozen(…) around it: its value for the original image",
			"%s has no derivative", o.name)
	}
	return t.folded()
}

// arguments returns the arguments by the operator's names, nil for one that isn't given.
func (b *binder) arguments(o *operator, n *node) ([]*node, error) {
	args := slices.Clone(n.args)
	if len(args) > len(o.names) {
		return nil, b.errorAt(n.args[len(o.names)], "it is "+o.form, "%s has too many arguments", o.name)
	}
	for len(args) < len(o.names) {
		args = append(args, nil)
	}
	for _, a := range n.named {
		k := slices.IndexFunc(o.names, func(name string) bool { return name == a.name })
		switch {
		case k < 0:
			return nil, errorAt(b.text, a.at, "it is "+o.form, "%s has no argument %s", o.name, a.name)
		case args[k] != nil:
			return nil, errorAt(b.text, a.at, "", "the argument %s of %s is given twice", a.name, o.name)
		}
		args[k] = a.node
	}
	for k := range o.required {
		if args[k] == nil {
			return nil, b.errorAt(n, "it is "+o.form, "%s lacks the argument %s", o.name, o.names[k])
		}
	}
	return args, nil
}

// folded returns the constant that a term of constants is.
func (t *term) folded() (*term, error) {
	if len(t.args) == 0 {
		return t, nil
	}
	for _, a := range t.args {
		if a == nil || a.value == nil {
			return t, nil
		}
	}
	v, err := (&state{}).eval(t)
	if err != nil || len(v.shape) > 0 {
		return t, err
	}
	return &term{operator: &constant, node: t.node, value: &v, Type: Type{Low: v.number(), High: v.number(),
		Linear: true, Frozen: true}}, nil
}

// whole returns the whole number that a constant argument is.
func (t *term) whole() (int, bool) {
	if t == nil || t.value == nil || len(t.value.shape) > 0 {
		return 0, false
	}
	v := t.value.number()
	return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<31
}

// axes reads the axes that arguments name, all if there are none.
func (b *binder) axes(t *term, args []*term) ([]int, error) {
	rank := len(t.args[0].Shape)
	var axes []int
	for _, a := range args {
		if a == nil {
			continue
		}
		k, ok := a.whole()
		switch {
		case !ok:
			return nil, b.errorAt(a.node, "", "an axis is a number")
		case k < -rank || k >= rank:
			return nil, b.errorAt(a.node, "the axis of images isn't counted",
				"there is no axis %d: this is of %v", k, t.args[0].Type)
		}
		k = (k + rank) % rank
		if slices.Contains(axes, k) {
			return nil, b.errorAt(a.node, "", "the axis %d is named twice", k)
		}
		axes = append(axes, k)
	}
	if axes == nil {
		for k := range rank {
			axes = append(axes, k)
		}
	}
	slices.Sort(axes)
	return axes, nil
}

// written returns an output's name as expressions write it.
func written(name string) string {
	if list, err := tokens(name); err == nil && len(list) == 2 && list[0].kind == word &&
		wordNamed(name) == nil {
		return name
	}
	return `"` + name + `"`
}
