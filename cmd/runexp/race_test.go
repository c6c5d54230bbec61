package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoroutinesAreRaced holds that make test runs every package that starts goroutines under the race
// detector.
func TestGoroutinesAreRaced(t *testing.T) {
	out, err := exec.Command("make", "--no-print-directory", "-C", "../..", "raced").Output()
	if err != nil {
		t.Fatalf("make raced: %v", err)
	}
	raced := map[string]bool{}
	for _, pkg := range strings.Fields(string(out)) {
		raced[strings.TrimPrefix(pkg, module)] = true
	}
	started := 0
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		pkg, err := filepath.Rel("../..", filepath.Dir(path))
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !startsGoroutines(f) {
			return nil
		}
		started++
		if !raced[filepath.ToSlash(pkg)] {
			t.Errorf("%s starts goroutines: add ./%s to CONCURRENT in the Makefile", path, pkg)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if started == 0 {
		t.Error("no file starts goroutines: the test looks in the wrong place")
	}
}

// startsGoroutines reports whether a file has a go statement, or imports a library that has them.
func startsGoroutines(f *ast.File) (found bool) {
	for _, i := range f.Imports {
		found = found || strings.HasPrefix(i.Path.Value, `"github.com/sourcegraph/conc`)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		_, ok := n.(*ast.GoStmt)
		found = found || ok
		return !found
	})
	return found
}
