package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// What a function may have at most: lines, unless it decides nothing, as a list of all stages does, and a
// cyclomatic complexity.
const (
	maxFunctionLines = 80
	maxComplexity    = 20
)

// TestFunctionsAreShort holds the functions of the project, tests apart, to what a reader can keep in mind.
func TestFunctionsAreShort(t *testing.T) {
	for path, b := range projectFiles(t) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, b, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		eachFunction(file, func(name string, f ast.Node) {
			lines := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
			n := complexity(f)
			if n > maxComplexity || lines > maxFunctionLines && n > 1 {
				t.Errorf("%s: %s has %d lines and complexity %d, the maxima are %d and %d", path, name, lines,
					n, maxFunctionLines, maxComplexity)
			}
		})
	}
}

// eachFunction calls use with each function of a file, and with each function literal outside of functions,
// which has the name of its variable.
func eachFunction(file *ast.File, use func(name string, f ast.Node)) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			use(f.Name.Name, f)
			continue
		}
		name := ""
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				name = n.Names[0].Name
			case *ast.FuncLit:
				use(name, n)
				return false
			}
			return true
		})
	}
}

// complexity returns the cyclomatic complexity of a function, as gocyclo counts it: one more than its
// decisions, of which switch and select have one a case.
func complexity(f ast.Node) int {
	n := 1
	ast.Inspect(f, func(at ast.Node) bool {
		switch at := at.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if at.List != nil { // not default
				n++
			}
		case *ast.CommClause:
			if at.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if at.Op == token.LAND || at.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// TestComplexity counts the decisions of a few functions.
func TestComplexity(t *testing.T) {
	for body, want := range map[string]int{
		``:                                    1,
		`if a && b || c { f() } else { g() }`: 4,
		`for range 3 { for i := 0; i < 2; i++ { f() } }`: 3,
		`switch x { case 1, 2: f(); case 3: default: }`:  3,
		`select { case <-c: default: }`:                  2,
		`f(func() { if a { g() } })`:                     2,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := complexity(file); n != want {
			t.Errorf("%s: complexity %d, not %d", body, n, want)
		}
	}
}
