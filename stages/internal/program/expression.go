package program

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/classname"
)

// An Expression is the class that is explained: one operand, or two with a minus sign between them, whose
// difference is explained. An operand is
//
//	predicted     the class with the largest answer
//	predicted:K   the class with the K-th largest answer, 1 being the largest
//	label         the labelled class
//	N             class number N
//	a name        the class of that name, which [Expression.Resolve] looks up
//
// So "predicted-predicted:2" is the margin of the decision, "7-3" a contrast of two fixed classes. Names may
// contain hyphens, so a minus sign next to a name has blanks around it: "tench - goldfish".
type Expression struct{ operands []operand }

type operand struct {
	rank  int // of the prediction, from 1; 0 if it is none
	label bool
	class int
	name  string // of the class, "" once it is known
}

// PredictedClass is the expression of the class with the largest answer.
const PredictedClass = "predicted"

// ParseExpression reads an Expression. The error says what an operand may be.
func ParseExpression(text string) (Expression, error) {
	var e Expression
	parts := strings.Split(text, " - ")
	if len(parts) == 1 && (isOperand(strings.Split(text, "-")...) || !isName(text)) {
		parts = strings.Split(text, "-")
	}
	if len(parts) > 2 {
		return e, fmt.Errorf("%q subtracts more than one class", text)
	}
	for _, part := range parts {
		o, ok := parseOperand(part)
		if !ok && isName(part) {
			o, ok = operand{name: part}, true
		}
		if !ok {
			return e, fmt.Errorf("%q is neither predicted nor predicted:K nor label nor the number or name "+
				"of a class, nor a difference of two of these", text)
		}
		e.operands = append(e.operands, o)
	}
	if len(parts) == 2 && e.operands[0] == e.operands[1] {
		return e, fmt.Errorf("%q is the difference of a class and itself", text)
	}
	return e, nil
}

// isOperand reports whether all texts are operands, none of them a name.
func isOperand(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		_, ok := parseOperand(text)
		return !ok
	})
}

// isName reports whether a text may be the name of a class: it has a letter, and isn't nearly an operand.
func isName(text string) bool {
	word, _, ranked := strings.Cut(text, ":")
	like := stages.Nearest(word, []string{PredictedClass})
	return strings.ContainsFunc(text, unicode.IsLetter) && strings.Trim(text, " -") == text && like == "" &&
		!(ranked && word == "label")
}

// Resolve returns the expression with names replaced by the numbers that they have in lists of class names,
// which separate names by line breaks: in the first list that has the name. A list may be empty or
// [AnyNames].
func (e Expression) Resolve(lists ...string) (Expression, error) {
	e.operands = slices.Clone(e.operands)
	for i := range e.operands {
		o := &e.operands[i]
		if o.name == "" {
			continue
		}
		var err error
		if o.class, err = classNamed(o.name, lists); err != nil {
			if !slices.Contains(lists, AnyNames) {
				return e, err
			}
			continue
		}
		o.name = ""
	}
	e.takeAny()
	return e, nil
}

// takeAny gives each name that is left one of the first two classes.
func (e Expression) takeAny() {
	for i, o := range e.operands {
		if o.name == "" {
			continue
		}
		o = operand{}
		if other := len(e.operands) - 1 - i; other != i && e.operands[other] == o {
			o.class = 1
		}
		e.operands[i] = o
	}
}

// AnyNames stands for a list of class names that isn't known yet, and has every name: its class is one of the
// first two, another one than the class that it is compared with.
const AnyNames = "\x00"

func classNamed(name string, lists []string) (int, error) {
	var all []string
	for _, list := range lists {
		if list == "" || list == AnyNames {
			continue
		}
		names := strings.Split(list, "\n")
		switch found := classname.Find(names, name); {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return 0, fmt.Errorf("several classes are called %q, such as %d and %d: give a number", name,
				found[0], found[1])
		}
		all = append(all, names...)
	}
	if all == nil {
		return 0, fmt.Errorf("no names of classes are known, to find %q: give model/onnx labels: FILE, with "+
			"a line for each class; data sets of named classes have them on the port labels", name)
	}
	if near := stages.Nearest(name, classname.Words(all)); near != "" {
		return 0, fmt.Errorf("no class is called %q: did you mean %q?", name, near)
	}
	return 0, fmt.Errorf("no class is called %q, of %d such as %q", name, len(all), all[0])
}

func parseOperand(text string) (o operand, ok bool) {
	name, rank, ranked := strings.Cut(text, ":")
	switch {
	case text == "label":
		return operand{label: true}, true
	case text == PredictedClass:
		return operand{rank: 1}, true
	case ranked && name == PredictedClass:
		n, ok := number(rank)
		return operand{rank: n}, ok && n > 0
	}
	n, ok := number(text)
	return operand{class: n}, ok
}

// number reads digits alone, without signs, which strconv would take.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && text[0] != '+'
}

// Predicts reports whether the expression depends on the model's answer.
func (e Expression) Predicts() bool {
	return slices.ContainsFunc(e.operands, func(o operand) bool { return o.rank > 0 })
}

// Compares reports whether two classes are compared.
func (e Expression) Compares() bool { return len(e.operands) > 1 }

// Labelled reports whether the expression depends on the label.
func (e Expression) Labelled() bool {
	return slices.ContainsFunc(e.operands, func(o operand) bool { return o.label })
}

// Fits returns an error if a model with that many classes lacks one that e names.
func (e Expression) Fits(classes int) error {
	for _, o := range e.operands {
		switch {
		case o.rank > classes:
			return fmt.Errorf("predicted:%d: the model has %d classes", o.rank, classes)
		case o.class >= classes && o.rank == 0 && !o.label:
			return fmt.Errorf("class %d is not one of the model's %d, which are 0 to %d", o.class, classes,
				classes-1)
		}
	}
	return nil
}

// ErrSameClass is the error of a difference of a class and itself.
var ErrSameClass = errors.New("both classes of the difference are")

// Target returns the target that e names among the given number of classes. row is the model's answer, needed
// if e predicts; label a payload of labels, needed if e is labelled.
func (e Expression) Target(row []float32, label []byte, classes int) (Target, error) {
	if err := e.Fits(classes); err != nil {
		return Target{}, err
	}
	found := [2]int{-1, -1}
	for i, o := range e.operands {
		switch {
		case o.label:
			t, err := TargetOf(label, classes)
			if err != nil {
				return Target{}, fmt.Errorf("label: %w", err)
			}
			found[i] = t.Class
		case o.rank == 1:
			found[i] = Predicted(row)
		case o.rank > 1:
			found[i] = ranked(row)[o.rank-1]
		default:
			found[i] = o.class
		}
	}
	if found[0] == found[1] {
		return Target{}, fmt.Errorf("%w class %d, which explains nothing; predicted-predicted:2 always has "+
			"two, predicted-label if the image is classified wrongly (the list of dataset/folder selects "+
			"images)", ErrSameClass, found[0])
	}
	return Target{Class: found[0], Minus: found[1]}, nil
}

// ranked returns the classes from the largest answer to the smallest; of equal answers the smaller class
// comes first.
func ranked(row []float32) []int {
	classes := make([]int, len(row))
	for i := range classes {
		classes[i] = i
	}
	slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(row[b], row[a]) })
	return classes
}

// Payload returns the payload of targets that [Net.Target] reads as t.
func (t Target) Payload() []byte {
	if t.Frozen != nil {
		return stages.NewTensor(t.Frozen, len(t.Frozen)).Encode()
	}
	if t.Minus < 0 {
		return stages.NewTensor([]int64{int64(t.Class)}, 1).Encode()
	}
	return stages.NewTensor([]int64{int64(t.Class), int64(t.Minus)}, 2).Encode()
}
