package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Einsum has the same meaning at every opset. Derivatives are known of products of two values in which each
// index of an operand is in the other one or in the result, and the result is written out. Other equations
// are written as sums and such products, from the first operand to the last. An index that is repeated in
// an operand is its diagonal, and "..." are the axes without a letter.
var einsum = []converter{{"Einsum", 12, Newest, func(e *edit, n onnx.Node) error {
	terms, out, err := e.terms(n)
	if err != nil {
		return err
	}
	if simple(n.Text("equation", ""), terms, out) {
		e.keep(n)
		return nil
	}
	var operands []operand
	sizes := map[rune]int{}
	for i, term := range terms {
		shape, err := e.fixed(n.Input[i])
		if err != nil {
			return err
		}
		if len(shape) != len(term) {
			return fmt.Errorf("%q has %d axes, which %q doesn't fit", n.Input[i], len(shape), term)
		}
		for k, letter := range term {
			sizes[letter] = max(sizes[letter], shape[k])
		}
	}
	for i, term := range terms {
		others := slices.Delete(slices.Clone(terms), i, i+1)
		o, err := e.operand(n, n.Input[i], term, strings.Join(others, "")+out, sizes)
		if err != nil {
			return err
		}
		operands = append(operands, o)
	}
	for len(operands) > 1 {
		a, b := operands[0], operands[1]
		operands = operands[1:]
		to := out
		if len(operands) > 1 {
			wanted := out
			for _, o := range operands[1:] {
				wanted += o.term
			}
			to = ""
			for _, letter := range a.term + b.term {
				if strings.ContainsRune(wanted, letter) && !strings.ContainsRune(to, letter) {
					to += string(letter)
				}
			}
		}
		operands[0] = operand{e.op(n.Output[0], "Einsum", []string{a.v, b.v},
			onnx.Attr{Name: "equation", Value: a.term + "," + b.term + "->" + to}), to}
	}
	last := operands[0]
	perm := make([]int, len(out))
	for i, letter := range out {
		if perm[i] = strings.IndexRune(last.term, letter); perm[i] < 0 {
			return fmt.Errorf("its result has the index %q, and no operand has", string(letter))
		}
	}
	e.to(n.Output[0], "Transpose", []string{last.v}, onnx.Attr{Name: "perm", Value: long(perm)})
	return nil
}}}

// An operand is a value and the letters of its axes.
type operand struct{ v, term string }

// terms returns the letters of an Einsum's operands and of its result, written out.
func (e *edit) terms(n onnx.Node) (terms []string, out string, err error) {
	equation := strings.ReplaceAll(n.Text("equation", ""), " ", "")
	in, out, stated := strings.Cut(equation, "->")
	if terms = strings.Split(in, ","); len(terms) != len(n.Input) {
		return nil, "", fmt.Errorf("its equation %q is of %d operands, and it has %d", equation, len(terms),
			len(n.Input))
	}
	dots := ""
	if strings.Contains(in, "...") {
		free := unused52(equation)
		for i, term := range terms {
			if !strings.Contains(term, "...") {
				continue
			}
			rank, err := e.rank(n.Input[i])
			if err != nil {
				return nil, "", err
			}
			more := rank - len(term) + len("...")
			if more < 0 || more > len(free) {
				return nil, "", fmt.Errorf("%q has %d axes, which %q doesn't fit", n.Input[i], rank, term)
			}
			dots = free[len(free)-max(more, len(dots)):]
			terms[i] = strings.Replace(term, "...", free[len(free)-more:], 1)
		}
	}
	if out = strings.Replace(out, "...", dots, 1); !stated {
		var once []rune
		for _, letter := range strings.Join(terms, "") {
			if strings.Count(strings.Join(terms, ""), string(letter)) == 1 &&
				!strings.ContainsRune(dots, letter) {
				once = append(once, letter)
			}
		}
		slices.Sort(once)
		out = dots + string(once)
	}
	if strings.Contains(strings.Join(terms, "")+out, ".") {
		return nil, "", fmt.Errorf("its equation %q isn't one", equation)
	}
	return terms, out, nil
}

// unused52 returns the letters that an equation doesn't use.
func unused52(equation string) string {
	return strings.Map(func(letter rune) rune {
		if strings.ContainsRune(equation, letter) {
			return -1
		}
		return letter
	}, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// simple reports whether an Einsum can stay as it is.
func simple(equation string, terms []string, out string) bool {
	if len(terms) != 2 || strings.Contains(equation, ".") || !strings.Contains(equation, "->") {
		return false
	}
	for i, term := range terms {
		for k, letter := range term {
			if strings.ContainsRune(term[:k], letter) || !strings.ContainsRune(terms[1-i]+out, letter) {
				return false
			}
		}
	}
	return true
}

// operand writes an operand's factor of the product: its diagonal if a letter is repeated, summed over the
// letters that nothing else has. An axis of one element that stands for a longer one, whose length is in
// all, is dropped.
func (e *edit) operand(n onnx.Node, v, term, others string, all map[rune]int) (operand, error) {
	hint := n.Output[0]
	shape, err := e.fixed(v)
	if err != nil {
		return operand{}, err
	}
	letters, sizes := []rune(term), slices.Clone(shape)
	for i := 0; i < len(letters); i++ {
		first := slices.Index(letters, letters[i])
		switch {
		case sizes[i] == 1 && all[letters[i]] > 1:
			letters, sizes = slices.Delete(letters, i, i+1), slices.Delete(sizes, i, i+1)
			v = e.reshape(hint, v, sizes...)
			i--
		case first < i:
			size := sizes[i]
			eye, err := e.matrix(size, size)
			if err != nil {
				return operand{}, err
			}
			for k := range size {
				eye[k*size+k] = 1
			}
			// The second axis has a letter of its own until the product.
			second := unused52(string(letters) + others)[:1]
			from := slices.Clone(letters)
			from[i] = rune(second[0])
			to := slices.Delete(slices.Clone(letters), i, i+1)
			v = e.op(hint, "Einsum", []string{v, e.weight(onnx.FloatTensor(e.m.Fresh(hint+"/diagonal"), eye,
				size, size))}, onnx.Attr{Name: "equation",
				Value: string(from) + "," + string(letters[i]) + second + "->" + string(to)})
			letters, sizes = to, slices.Delete(sizes, i, i+1)
			i--
		}
	}
	var alone []int
	var rest []rune
	for i, letter := range letters {
		if strings.ContainsRune(others, letter) {
			rest = append(rest, letter)
		} else {
			alone = append(alone, i)
		}
	}
	if alone != nil {
		v = e.op(hint, "ReduceSum", []string{v, e.ints(hint+"/axes", alone...)},
			onnx.Attr{Name: "keepdims", Value: 0})
	}
	return operand{v, string(rest)}, nil
}
