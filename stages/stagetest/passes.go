package stagetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// Passes returns the value of a formula of [stages.Passes], given its quantities, and whether it is a bound.
func Passes(t testing.TB, formula string, known map[string]int) (value int, bound bool) {
	t.Helper()
	if formula == "" {
		return 0, false
	}
	formula, bound = strings.CutPrefix(formula, "≤ ")
	tree, err := parser.ParseExpr(strings.NewReplacer("×", "*", "−", "-").Replace(formula))
	if err != nil {
		t.Fatalf("%q: %v", formula, err)
	}
	var eval func(ast.Expr) int
	eval = func(e ast.Expr) int {
		switch e := e.(type) {
		case *ast.BasicLit:
			n, err := strconv.Atoi(e.Value)
			if err != nil {
				t.Fatalf("%q: %v", formula, err)
			}
			return n
		case *ast.Ident:
			n, ok := known[e.Name]
			if !ok {
				t.Fatalf("%q: %s is neither a parameter nor one of stages.PassQuantities", formula, e.Name)
			}
			return n
		case *ast.ParenExpr:
			return eval(e.X)
		case *ast.BinaryExpr:
			switch a, b := eval(e.X), eval(e.Y); e.Op {
			case token.ADD:
				return a + b
			case token.SUB:
				return a - b
			case token.MUL:
				return a * b
			}
		}
		t.Fatalf("%q isn't a formula of sums and products", formula)
		return 0
	}
	return eval(tree), bound
}
