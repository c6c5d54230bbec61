package claims

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Relation is a relation between two numbers.
type Relation string

const (
	Larger  Relation = ">"
	Smaller Relation = "<"
	Better  Relation = "beats" // larger where larger is better, and smaller where smaller is
	Equal   Relation = "="     // to the decimals that are written, of a number and a threshold
)

// A Claim compares the number of one id of an axis with those of other ids, or a number with a threshold.
type Claim struct {
	Subject  string // an id, or the name of the number
	Relation Relation
	Rivals   []string // ids on the subject's axis; nil with Every. Of a threshold, its text
	Every    bool     // all other ids of the axis
	Where    []Condition
}

// A Condition selects the results that have one of some ids on an axis.
type Condition struct {
	Axis string
	IDs  []string
}

// Grammar is what a claim looks like, for messages.
const Grammar = `"a > b, c", "a < *", "a beats b where axis=x,y", "NUMBER > 0.8" or "NUMBER = 0.75"`

// Claims are made of names, which are letters, digits, dots, dashes and underscores, and of signs.
var (
	token  = regexp.MustCompile(`^\s*([A-Za-z0-9._+-]+|[><=,*])`)
	isName = regexp.MustCompile(`^[A-Za-z0-9._+-]+$`).MatchString
)

// Parse reads a claim.
func Parse(text string) (Claim, error) {
	var c Claim
	tokens, err := tokensOf(text)
	if err != nil {
		return c, err
	}
	p := parser{tokens}
	c.Subject = p.name()
	switch c.Relation = Relation(p.next()); c.Relation {
	case Larger, Smaller, Better, Equal:
	default:
		return c, fmt.Errorf("%q is no claim, which is %s: >, <, = or beats is missing", text, Grammar)
	}
	if c.Every = p.take("*"); !c.Every {
		c.Rivals = p.names()
	}
	if c.Subject == "" || !c.Every && c.Rivals == nil {
		return c, fmt.Errorf("%q is no claim, which is %s: a name is missing", text, Grammar)
	}
	if _, numeric := c.threshold(); c.Relation == Equal &&
		(!numeric || strings.Trim(c.Rivals[0], "+-.0123456789") != "") {
		return c, fmt.Errorf("%q has no decimal number behind =", text)
	}
	if slices.Contains(c.Rivals, c.Subject) {
		return c, fmt.Errorf("%q compares %s with itself", text, c.Subject)
	}
	if len(p.tokens) > 0 && !p.take("where") {
		return c, fmt.Errorf("%q is no claim, which is %s: %q is too much", text, Grammar, p.tokens[0])
	} else if len(tokens) > 0 && tokens[len(tokens)-1] == "where" {
		return c, fmt.Errorf("%q has no condition behind where", text)
	}
	c.Where, err = p.conditions(text)
	return c, err
}

// tokensOf splits a claim into names and signs.
func tokensOf(text string) (tokens []string, err error) {
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := token.FindString(rest)
		if m == "" {
			return nil, fmt.Errorf("%q is no claim, which is %s: %q is no part of one", text, Grammar,
				[]rune(strings.TrimSpace(rest))[0])
		}
		tokens, rest = append(tokens, strings.TrimSpace(m)), rest[len(m):]
	}
	return tokens, nil
}

// String writes the claim as [Parse] reads it.
func (c Claim) String() string {
	text := c.Subject + " " + string(c.Relation) + " " + strings.Join(c.Rivals, ", ")
	if c.Every {
		text += "*"
	}
	for i, w := range c.Where {
		if i == 0 {
			text += " where"
		}
		text += " " + w.Axis + "=" + strings.Join(w.IDs, ",")
	}
	return text
}

// threshold returns the number that the claim compares with, if it is one.
func (c Claim) threshold() (float64, bool) {
	if len(c.Rivals) != 1 || c.Relation == Better {
		return math.NaN(), false
	}
	x, err := strconv.ParseFloat(c.Rivals[0], 64)
	return x, err == nil && x-x == 0
}

// margin returns by how much the claim holds for two numbers, d being the better direction: it doesn't hold
// if the margin isn't positive, and is undefined if it is NaN.
func (c Claim) margin(d stages.Direction, x, y float64) float64 {
	switch {
	case c.Relation == Smaller, c.Relation == Better && d == stages.Lower:
		return y - x
	case c.Relation == Better && d != stages.Higher:
		return math.NaN()
	case c.Relation == Equal:
		_, decimals, _ := strings.Cut(c.Rivals[0], ".")
		return math.Pow10(-len(decimals))/2 - math.Abs(x-y)
	}
	return x - y
}

// A parser takes tokens from the front; a missing token is "".
type parser struct{ tokens []string }

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) take(t string) bool {
	if len(p.tokens) == 0 || p.tokens[0] != t {
		return false
	}
	p.next()
	return true
}

func (p *parser) name() string {
	if len(p.tokens) == 0 || !isName(p.tokens[0]) {
		return ""
	}
	return p.next()
}

// conditions returns the rest of the tokens as conditions of a claim.
func (p *parser) conditions(claim string) (all []Condition, err error) {
	for len(p.tokens) > 0 {
		w := Condition{Axis: p.name()}
		if !p.take("=") || w.Axis == "" {
			return all, fmt.Errorf("%q has a condition that isn't axis=id,id", claim)
		}
		if w.IDs = p.names(); w.IDs == nil {
			return all, fmt.Errorf("%q has a condition without ids on the axis %s", claim, w.Axis)
		}
		if slices.ContainsFunc(all, func(o Condition) bool { return o.Axis == w.Axis }) {
			return all, fmt.Errorf("%q has two conditions on the axis %s", claim, w.Axis)
		}
		all = append(all, w)
	}
	return all, nil
}

// names returns names with commas between them, nil without one or where one is missing.
func (p *parser) names() (all []string) {
	for {
		name := p.name()
		if name == "" || slices.Contains(all, name) {
			return nil
		}
		if all = append(all, name); !p.take(",") {
			return all
		}
	}
}
