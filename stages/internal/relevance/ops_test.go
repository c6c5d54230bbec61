package relevance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEveryOperatorIsListed checks that differentiable returns the operators declared in the files op_*.go,
// each in the file of its name, in sorted order, as opaque lists the others, and that All has each of either
// once.
func TestEveryOperatorIsListed(t *testing.T) {
	listed := map[string]*Op{}
	var types []string
	for _, op := range differentiable() {
		listed["op"+op.Type] = op
		types = append(types, op.Type)
	}
	if !slices.IsSorted(types) || !slices.IsSorted(opaque) {
		t.Errorf("not in order: %q, opaque %q", types, opaque)
	}
	all := map[string]bool{}
	for _, op := range All() {
		all[op.Type] = true
	}
	if len(all) != len(types)+len(opaque) {
		t.Errorf("All has %d operators, and %d and %d are listed: one is listed twice", len(all), len(types),
			len(opaque))
	}
	files, err := filepath.Glob("op_*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				name := s.(*ast.ValueSpec).Names[0].Name
				if listed[name] == nil {
					t.Errorf("%s: add the line %s to differentiable in ops.go", file, name)
				}
				delete(listed, name)
				if want := "op_" + strings.ToLower(strings.TrimPrefix(name, "op")) + ".go"; file != want {
					t.Errorf("%s belongs into %s", name, want)
				}
			}
		}
	}
	for name := range listed {
		t.Errorf("%s is listed and not declared in a file op_*.go", name)
	}
}

// TestDeclarations checks that operators declare all that the walk and the tests need.
func TestDeclarations(t *testing.T) {
	for _, op := range All() {
		if flows := op.Kind != Opaque; flows != (op.VJP != nil) || flows != (op.Examples != nil) {
			t.Errorf("%s is %s: with VJP %v, with examples %v", op.Type, op.Kind, op.VJP != nil,
				op.Examples != nil)
		}
		var names []string
		for _, ex := range op.Examples {
			names = append(names, ex.Name)
		}
		slices.Sort(names)
		if n := len(slices.Compact(names)); n != len(op.Examples) || slices.Contains(names, "") {
			t.Errorf("%s: names of examples %q", op.Type, names)
		}
	}
}

func TestKindNames(t *testing.T) {
	if want := []string{"opaque", "move", "affine", "bilinear", "sum", "activation", "select",
		"joint"}; !reflect.DeepEqual(kindNames[:], want) || Joint.String() != "joint" {
		t.Errorf("kinds %q", kindNames)
	}
}
