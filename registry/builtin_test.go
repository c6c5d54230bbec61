package registry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode"

	"github.com/runexp/runexp/stages"
)

// declared returns "family.Var" for every exported stage in the folders of stages: a variable made by
// stages.New or program.Stage, or by a function of the same package that returns a stages.Stage.
func declared(t *testing.T) []string {
	t.Helper()
	folders, err := os.ReadDir("../stages")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range folders {
		if !d.IsDir() || d.Name() == "internal" || d.Name() == "stagetest" {
			continue
		}
		for _, v := range stageVars(t, filepath.Join("../stages", d.Name())) {
			found = append(found, d.Name()+"."+v)
		}
	}
	sort.Strings(found)
	return found
}

func stageVars(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{} // variable: what's called to make it
	makers := map[string]bool{"stages.New": true, "program.Stage": true}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if r := decl.Type.Results; r != nil && len(r.List) == 1 &&
					text(r.List[0].Type) == "stages.Stage" {
					makers[decl.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || len(v.Names) != 1 || len(v.Values) != 1 || !v.Names[0].IsExported() {
						continue
					}
					if call, ok := v.Values[0].(*ast.CallExpr); ok {
						calls[v.Names[0].Name] = text(call.Fun)
					}
				}
			}
		}
	}
	var vars []string
	for v, f := range calls {
		if makers[f] {
			vars = append(vars, v)
		}
	}
	return vars
}

// text writes the few forms of expression that name a function or a type.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return text(e.X)
	}
	return ""
}

// listed returns the lines of Builtin, in their order.
func listed(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "builtin.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && text(call.Fun) == "New" {
			for _, a := range call.Args {
				lines = append(lines, text(a))
			}
		}
		return true
	})
	return lines
}

func TestBuiltinIsComplete(t *testing.T) {
	have := listed(t)
	for _, v := range declared(t) {
		if !slices.Contains(have, v) {
			t.Errorf("registry/builtin.go lacks the line\n\t\t%s,", v)
		}
	}
	if !sort.StringsAreSorted(have) {
		t.Errorf("the lines of registry/builtin.go aren't sorted: %v", have)
	}
	if got := len(Builtin().Names()); got != len(have) {
		t.Errorf("Builtin has %d stages, its list %d lines", got, len(have))
	}
}

var (
	stageName = regexp.MustCompile(`^[a-z]+/[a-z0-9]+(-[a-z0-9]+)*$`)
	fieldName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
)

func TestBuiltinIsWellFormed(t *testing.T) {
	set := Builtin()
	seen := map[string]bool{}
	for _, s := range set.Family("") {
		t.Run(s.Name, func(t *testing.T) {
			if seen[s.Name] {
				t.Error("there are two of that name")
			}
			seen[s.Name] = true
			if !stageName.MatchString(s.Name) {
				t.Error("not a name like family/kebab-case")
			}
			title, _, _ := strings.Cut(s.Doc, "\n")
			if title == "" || len([]rune(title)) > 60 || strings.HasSuffix(title, ".") {
				t.Errorf("the title %q isn't a line of at most 60 letters without a full stop", title)
			}
			if first := []rune(title + "  "); unicode.IsUpper(first[0]) && !unicode.IsUpper(first[1]) {
				t.Errorf("the title %q begins with a capital", title)
			}
			if s.Version < 1 {
				t.Error("the version isn't 1 or more")
			}
			ports(t, set, s)
			defaults(t, s)
			for _, v := range s.Variants {
				if v.Item == "" || v.Default == "" || v.Differs == "" {
					t.Errorf("a variant with an empty field: %+v", v)
				}
			}
		})
	}
}

func ports(t *testing.T, set *Set, s *stages.Stage) {
	if len(s.Outputs) == 0 {
		t.Error("it has no outputs")
	}
	for side, list := range map[string][]stages.Port{"input": s.Inputs, "output": s.Outputs} {
		names := map[string]bool{}
		for _, p := range list {
			if names[p.Name] {
				t.Errorf("two %s ports are called %q", side, p.Name)
			}
			names[p.Name] = true
			for _, other := range []string{p.Via, p.Else} {
				if _, ok := set.Lookup(other); other != "" && !ok {
					t.Errorf("%s %q names the stage %q, which isn't there", side, p.Name, other)
				}
			}
			if p.Beside != "" && s.Input(p.Beside) == nil {
				t.Errorf("%s %q is beside the input %q, which isn't there", side, p.Name, p.Beside)
			}
			if p.SameTarget != "" && s.Input(p.SameTarget) == nil {
				t.Errorf("%s %q has the target of the input %q, which isn't there", side, p.Name,
					p.SameTarget)
			}
		}
	}
}

func defaults(t *testing.T, s *stages.Stage) {
	names := map[string]bool{}
	for _, p := range parameters(s) {
		if !fieldName.MatchString(p.Name) {
			t.Errorf("the parameter %q isn't snake_case", p.Name)
		}
		if names[p.Name] {
			t.Errorf("two parameters are called %q", p.Name)
		}
		names[p.Name] = true
		if len(p.Choices) > 0 && p.Type.String() == "string" &&
			!slices.Contains(p.Choices, p.written()) {
			t.Errorf("the default %q of %q is not among its choices %v", p.Value, p.Name, p.Choices)
		}
	}
	if a, b := s.NewParams(), s.NewParams(); a == b && reflect.TypeOf(a).Elem().Size() > 0 {
		t.Error("NewParams hands out the same struct twice")
	}
}

// A parameter that a stage may declare belongs to an input of maps, and some stage declares it.
func TestDeclaredParameters(t *testing.T) {
	all := Builtin().Family("")
	for _, s := range all {
		for _, f := range stages.Fields(s.NewParams()) {
			if f.Declared == "" {
				continue
			}
			known := func(o *stages.Stage) bool {
				if o.Declares == nil {
					return false
				}
				value := o.Declares(o.NewParams(), nil)[f.Name]
				return slices.Contains(f.Choices, value) || f.Choices == nil && value != ""
			}
			if p := s.Input(f.Declared); p == nil || p.Type.Name != stages.Maps.Name {
				t.Errorf("%s: %s is declared on the input %q, which has no maps", s.Name, f.Name, f.Declared)
			} else if !slices.ContainsFunc(all, known) {
				t.Errorf("%s: no stage declares %s", s.Name, f.Name)
			}
		}
	}
}

// A parameter that names axes declares it, with the input that they are collapsed on: check then refuses axes
// that over doesn't collapse. Claims name them inside a text, and refuse those themselves.
func TestAxesAreKnownAsSuch(t *testing.T) {
	speaks := regexp.MustCompile(`(?i)(^|[^xy]-|[^-\w])(axis|axes)\b`) // but for the x-axis of a figure
	pixels := map[string]bool{"model/onnx layout": true}               // the axes of a tensor
	n := 0
	for _, s := range Builtin().Family("") {
		for _, f := range stages.Fields(s.NewParams()) {
			if f.Axis != "" {
				n++
			}
			switch {
			case f.Axis != "" && s.Input(f.Axis) == nil:
				t.Errorf("%s: %s names axes of the input %q, which the stage doesn't have", s.Name, f.Name,
					f.Axis)
			case f.Name == "claims":
				p := s.NewParams()
				reflect.ValueOf(p).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf([]string{
					"a > b where nowhere=a"}))
				k, ok := p.(stages.Knower)
				if !ok || k.Known(map[string][]string{"method": {"a", "b"}}) == nil {
					t.Errorf("%s doesn't refuse a claim about an axis that isn't collapsed", s.Name)
				}
			case f.Axis == "" && speaks.MatchString(f.Doc) && !pixels[s.Name+" "+f.Name]:
				t.Errorf("%s: %s names an axis, by its description, and has no tag axis", s.Name, f.Name)
			}
		}
	}
	if n == 0 {
		t.Error("no parameter names an axis")
	}
}
