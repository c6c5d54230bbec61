package main

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/runexp/runexp/"

// The picture of the house: who may not import whom, not even through others.
// cmd → registry → stages/<family> → stages, and cmd → pipeline → stages.
var forbidden = []struct {
	from, to string // patterns of import paths below the module's
	direct   bool   // only what the package itself imports
	reason   string
	except   string // a package that may
}{
	{`pipeline(/.*)?`, `registry`, false, "the engine doesn't know what stages there are", ""},
	{`pipeline(/.*)?`, `stages/.+`, false, "the engine doesn't know any stage", ""},
	{`pipeline(/.*)?`, `cmd/.*`, false, "the engine is used by the command", ""},
	{`pipeline(/(plan|store|device|publish))?`, `pipeline/progress`, false, "the engine emits events, and doesn't show them", ""},
	{`pipeline/plan`, `pipeline/(store|device|publish|progress)`, false, "an experiment is checked and planned without store or device", ""},
	{`pipeline/(plan|store|device|publish)`, `pipeline`, false, "the engine's parts don't know the whole", ""},
	{`stages(/.*)?`, `pipeline(/.*)?`, false, "stages run under any engine", ""},
	{`stages(/.*)?`, `registry`, false, "stages don't know the list of them", ""},
	{`stages(/.*)?`, `cmd/.*`, false, "stages don't know the command", ""},
	{`registry`, `pipeline(/.*)?`, false, "the table of contents doesn't run anything", ""},
	{`registry`, `cmd/.*`, false, "the table of contents is used by the command", ""},
	{`stages`, `stages/.+`, false, "the contract comes before the work", ""},
	{`stages/internal/.*`, `stages/(dataset|mosaic|model|attribute|maps|perturb|score|stats|fuse|report)`, false, "families use what is internal, not the reverse", "stages/internal/modeltest"},
	{`cmd/runexp`, `stages/.+`, true, "the command borrows from families through registry", ""},
}

// imports returns what every package of the module imports, tests apart.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		f := strings.Fields(s.Text())
		all[f[0]] = f[1:]
	}
	return all
}

func TestImportPicture(t *testing.T) {
	all := imports(t)
	for _, rule := range forbidden {
		from, to := regexp.MustCompile("^"+rule.from+"$"), regexp.MustCompile("^"+rule.to+"$")
		for pkg := range all {
			name, ours := strings.CutPrefix(pkg, module)
			if !ours || name == rule.except || !from.MatchString(name) {
				continue
			}
			if way := path(all, pkg, to, rule.direct, map[string]bool{}); way != nil {
				t.Errorf("%s: %s", strings.Join(way, " → "), rule.reason)
			}
		}
	}
}

// path returns a chain of imports from pkg to a package that to matches, or nil.
func path(all map[string][]string, pkg string, to *regexp.Regexp, direct bool, seen map[string]bool) []string {
	for _, next := range all[pkg] {
		name, ours := strings.CutPrefix(next, module)
		if !ours || seen[next] {
			continue
		}
		seen[next] = true
		if to.MatchString(name) {
			return []string{pkg, next}
		}
		if direct {
			continue
		}
		if way := path(all, next, to, direct, seen); way != nil {
			return append([]string{pkg}, way...)
		}
	}
	return nil
}

func TestImportersOfModules(t *testing.T) {
	only := map[string]string{
		"github.com/yalue/onnxruntime_go":                 module + "stages/internal/ort",
		"github.com/schollz/progressbar/v3":               module + "pipeline/progress",
		"google.golang.org/protobuf/reflect/protoreflect": module + "stages/internal/onnx/onnxpb",
	}
	all := imports(t)
	for pkg, list := range all {
		for _, imported := range list {
			if by, ok := only[imported]; ok && strings.HasPrefix(pkg, module) && pkg != by {
				t.Errorf("%s imports %s, which is for %s", pkg, imported, by)
			}
		}
	}
	for _, imported := range all[module+"stages"] {
		if strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
			t.Errorf("the contract imports %s, which isn't of the standard library", imported)
		}
	}
}

func TestNoInit(t *testing.T) {
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".ci":
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, ".pb.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function: what happens should stand where it happens", file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
