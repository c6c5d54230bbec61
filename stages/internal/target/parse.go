package target

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A node is a part of an expression as it is written.
type node struct {
	op     string // the operator, or number, word, name (a quoted word), slice
	at     int    // its first byte
	text   string // of a word or a name
	number float64
	args   []*node // of a slice the bounds, nil if one is left out
	named  []namedNode
}

// A namedNode is an argument that is given by its name.
type namedNode struct {
	name string
	at   int
	*node
}

// name returns the word that a node is or calls.
func (n *node) name() string {
	if n.op == opWord {
		return n.text
	}
	return n.op
}

// walk calls visit with every node.
func (n *node) walk(visit func(*node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, a := range n.args {
		a.walk(visit)
	}
	for _, a := range n.named {
		a.walk(visit)
	}
}

// Operators of nodes that no function is called by.
const (
	opNumber = "number"
	opWord   = "word"
	opName   = "name"
	opIndex  = "index"
	opSlice  = "slice"
)

// Parse reads an expression. The error is an [*Error].
//
//	expression = sum [("==" | "!=" | "<=" | ">=" | "<" | ">") sum]
//	sum        = product {("+" | "-") product}
//	product    = factor {("*" | "/") factor}
//	factor     = "-" factor | operand {"[" index {"," index} "]"}
//	operand    = number | word | '"' name '"' | word "(" [argument {"," argument}] ")" | "(" expression ")"
//	argument   = [word "="] expression
//	index      = expression | [number] ":" [number]
func Parse(text string) (Expression, error) {
	p := &parser{text: text}
	var err error
	if p.tokens, err = tokens(text); err != nil {
		return Expression{}, err
	}
	root, err := p.expression()
	if err == nil && p.peek().kind != end {
		err = p.unexpected("an operator or the end")
	}
	if err == nil {
		root, err = expanded(text, root)
	}
	return Expression{text, root}, err
}

// Kinds of tokens.
type kind int

const (
	end kind = iota
	word
	name
	number
	sign
)

type token struct {
	kind kind
	at   int
	text string
}

// twoSigns are signs of two characters.
var twoSigns = []string{"==", "!=", "<=", ">="}

// tokens splits a text.
func tokens(text string) ([]token, error) {
	var out []token
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRuneInString(text[i:])
		t := token{at: i}
		switch {
		case unicode.IsSpace(r):
			i += width
			continue
		case r == '"':
			length := strings.IndexByte(text[i+1:], '"')
			if length < 0 {
				return nil, errorAt(text, i, "", "the quotation mark isn't closed")
			}
			t.kind, t.text = name, text[i+1:i+1+length]
			width = length + 2
		case r >= '0' && r <= '9' || r == '.':
			width = numberLength(text[i:])
			t.kind, t.text = number, text[i:i+width]
		case unicode.IsLetter(r) || r == '_':
			width = wordLength(text[i:])
			t.kind, t.text = word, text[i:i+width]
		default:
			if two := text[i:min(i+2, len(text))]; slices.Contains(twoSigns, two) {
				width = 2
			} else if !strings.ContainsRune("+-*/()[],:<>=", r) {
				return nil, errorAt(text, i, "", "%q isn't part of the language", r)
			}
			t.kind, t.text = sign, text[i:i+width]
		}
		out = append(out, t)
		i += width
	}
	return append(out, token{end, len(text), ""}), nil
}

// numberLength returns the length of the digits, point and exponent that a text begins with.
func numberLength(text string) int {
	n := 0
	for n < len(text) {
		c := text[n]
		exponent := (c == 'e' || c == 'E') && n > 0
		signed := (c == '-' || c == '+') && n > 0 && (text[n-1] == 'e' || text[n-1] == 'E')
		if !exponent && !signed && c != '.' && (c < '0' || c > '9') {
			break
		}
		n++
	}
	return n
}

// wordLength returns the length of the word that a text begins with. Names of presets may have hyphens.
func wordLength(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if n < 0 {
		n = len(text)
	}
	for _, p := range presets {
		if rest, ok := strings.CutPrefix(text, p.name); ok && len(p.name) > n &&
			(rest == "" || !isWord(rune(rest[0]))) {
			n = len(p.name)
		}
	}
	return n
}

type parser struct {
	text   string
	tokens []token
	depth  int
}

// deepest bounds how deep parentheses are nested.
const deepest = 100

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// sign takes one of the signs, if it is next.
func (p *parser) sign(signs ...string) (token, bool) {
	t := p.peek()
	for _, s := range signs {
		if t.kind == sign && t.text == s {
			return p.next(), true
		}
	}
	return t, false
}

func (p *parser) unexpected(expected string) error {
	t := p.peek()
	if t.kind == end {
		return errorAt(p.text, t.at, "", "the expression ends, and %s is expected", expected)
	}
	return errorAt(p.text, t.at, "", "%q, where %s is expected", t.text, expected)
}

func (p *parser) expect(s, what string) error {
	if _, ok := p.sign(s); !ok {
		return p.unexpected(what)
	}
	return nil
}

func (p *parser) expression() (*node, error) {
	if p.depth++; p.depth > deepest {
		return nil, errorAt(p.text, p.peek().at, "", "more than %d parentheses within each other", deepest)
	}
	defer func() { p.depth-- }()
	return p.binary([][]string{{"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/"}})
}

// binary parses operands between signs of the first level, which bind the least. Of comparisons there is one.
func (p *parser) binary(levels [][]string) (*node, error) {
	if len(levels) == 0 {
		return p.factor()
	}
	left, err := p.binary(levels[1:])
	for err == nil {
		t, ok := p.sign(levels[0]...)
		if !ok {
			return left, nil
		}
		var right *node
		if right, err = p.binary(levels[1:]); err == nil {
			left = &node{op: t.text, at: t.at, args: []*node{left, right}}
		}
		if len(levels) == 3 {
			break
		}
	}
	return left, err
}

func (p *parser) factor() (*node, error) {
	if p.depth++; p.depth > deepest {
		return nil, errorAt(p.text, p.peek().at, "", "more than %d signs in a row", deepest)
	}
	defer func() { p.depth-- }()
	if t, ok := p.sign("-"); ok {
		x, err := p.factor()
		switch {
		case err != nil:
			return nil, err
		case x.op == opNumber:
			x.number, x.at = -x.number, t.at
			return x, nil
		}
		return &node{op: negative.name, at: t.at, args: []*node{x}}, nil
	}
	x, err := p.operand()
	for err == nil {
		t, ok := p.sign("[")
		if !ok {
			return x, nil
		}
		x = &node{op: opIndex, at: t.at, args: []*node{x}}
		err = p.list("]", func() error {
			i, err := p.index()
			x.args = append(x.args, i)
			return err
		})
	}
	return x, err
}

// list parses what stands between commas, at least one, up to a closing sign.
func (p *parser) list(closing string, element func() error) error {
	for {
		if err := element(); err != nil {
			return err
		}
		if _, ok := p.sign(","); !ok {
			return p.expect(closing, fmt.Sprintf(`"," or %q`, closing))
		}
	}
}

// index parses what stands between brackets: an index, or two bounds with a colon between them.
func (p *parser) index() (*node, error) {
	s := &node{op: opSlice, at: p.peek().at, args: []*node{nil, nil}}
	for k := range s.args {
		t := p.peek()
		if t.kind != sign || t.text != ":" && t.text != "," && t.text != "]" {
			var err error
			if s.args[k], err = p.binary([][]string{{"+", "-"}, {"*", "/"}}); err != nil {
				return nil, err
			}
		}
		if _, ok := p.sign(":"); !ok || k == 1 {
			switch {
			case k == 1 && !ok:
				return s, nil
			case k == 1:
				return nil, errorAt(p.text, t.at, "", "an index has one colon")
			case s.args[0] == nil:
				return nil, p.unexpected("an index")
			}
			return s.args[0], nil
		}
	}
	return s, nil
}

func (p *parser) operand() (*node, error) {
	t := p.peek()
	if t.kind == sign && t.text != "(" {
		return nil, p.unexpected("a number, an output or a function")
	}
	p.next()
	switch {
	case t.kind == number:
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, errorAt(p.text, t.at, "", "%q is no number", t.text)
		}
		return &node{op: opNumber, at: t.at, number: v}, nil
	case t.kind == name:
		return &node{op: opName, at: t.at, text: t.text}, nil
	case t.kind == word:
		if _, ok := p.sign("("); ok {
			return p.call(t)
		}
		n := &node{op: opWord, at: t.at, text: t.text}
		if next := p.peek(); t.text == predictedWord && next.kind == sign && next.text == ":" &&
			len(p.tokens) > 1 && p.tokens[1].kind == number {
			p.next()
			rank := p.next()
			k, err := strconv.Atoi(rank.text)
			if err != nil || k < 1 {
				return nil, errorAt(p.text, rank.at, "", "predicted:%s: ranks are 1, 2, …", rank.text)
			}
			n.number = float64(k)
		}
		return n, nil
	case t.kind == sign:
		x, err := p.expression()
		if err == nil {
			err = p.expect(")", `")"`)
		}
		return x, err
	}
	return nil, p.unexpected("a number, an output or a function")
}

// call parses the arguments of a function.
func (p *parser) call(called token) (*node, error) {
	n := &node{op: called.text, at: called.at}
	if _, ok := p.sign(")"); ok {
		return n, nil
	}
	return n, p.list(")", func() error {
		if t := p.peek(); t.kind == word && p.tokens[1].kind == sign && p.tokens[1].text == "=" {
			p.next()
			p.next()
			x, err := p.expression()
			n.named = append(n.named, namedNode{t.text, t.at, x})
			return err
		}
		x, err := p.expression()
		if err == nil && len(n.named) > 0 {
			return errorAt(p.text, x.at, "", "an argument without a name after one with a name")
		}
		n.args = append(n.args, x)
		return err
	})
}
