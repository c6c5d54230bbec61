package golden

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

var update = flag.Bool("update", false,
	"rewrite golden.csv: keep what it says, add new files, drop missing ones")

// TestList: every official file stands in golden.csv with a state, and every file that stands there exists.
func TestList(t *testing.T) {
	entries, err := List()
	if err != nil {
		t.Fatal(err)
	}
	found, err := files(Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		listed = render(entries, found)
		if err := os.WriteFile("golden.csv", listed, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, e := range entries {
		if _, ok := slices.BinarySearch(found, e.File); !ok {
			t.Errorf("%s is listed and doesn't exist", e.File)
		}
	}
	for _, f := range found {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.File == f }) {
			t.Errorf("%s is in no column of golden.csv; run go generate and say what tests it, or why "+
				"nothing does", f)
		}
	}
}

// TestListIsComplete: states are valid and have reasons, and the tests named exist and mention the file. It
// needs nothing outside the project.
func TestListIsComplete(t *testing.T) {
	entries, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Problems(entries) {
		t.Error(c)
	}
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]*tests{}
	count := map[string]int{}
	for _, e := range entries {
		count[e.State]++
		for _, name := range e.Tests {
			folder, function, ok := strings.Cut(name, ".")
			if !ok {
				t.Errorf("%s: %q is not folder.TestName", e.File, name)
				continue
			}
			if packages[folder] == nil {
				if packages[folder], err = readTests(filepath.Join(root,
					filepath.FromSlash(folder))); err != nil {
					t.Fatal(err)
				}
			}
			if p := packages[folder]; !p.functions[function] {
				t.Errorf("%s: there is no test %s in %s", e.File, function, folder)
			} else if !p.mentions(e.File) {
				t.Errorf("%s: the tests in %s don't mention it", e.File, folder)
			}
		}
	}
	t.Logf("%d official files: %d tested, %d not yet, %d not applicable", len(entries), count[Tested],
		count[NotYet], count[NotApplicable])
}

// tests are the test files of one package.
type tests struct {
	functions map[string]bool
	text      string
}

func readTests(dir string) (*tests, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	p := &tests{functions: map[string]bool{}}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, b, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				p.functions[fn.Name.Name] = true
			}
		}
		p.text += string(b)
	}
	return p, nil
}

var patterns = regexp.MustCompile(`"([^"\s]*\*[^"\s]*)"`)

// mentions reports whether the tests name the file: by its name, or by its folder and either a pattern or the
// first word of its name, which files of many runs share.
func (p *tests) mentions(file string) bool {
	folder, base := path.Split(file)
	stem := strings.TrimSuffix(base, path.Ext(base))
	if strings.Contains(p.text, base) || strings.Contains(p.text, stem) {
		return true
	}
	if !strings.Contains(p.text, strings.TrimSuffix(folder, "/")) {
		return false
	}
	for _, m := range patterns.FindAllStringSubmatch(p.text, -1) {
		if ok, err := path.Match(m[1], base); ok && err == nil {
			return true
		}
	}
	word, _, _ := strings.Cut(stem, "_")
	return strings.Contains(p.text, word+"_")
}

func TestProblems(t *testing.T) {
	good := []Entry{{"a", Tested, []string{"x.TestY"}, ""}, {"b", NotYet, nil, "needs z"},
		{"c", NotApplicable, nil, "a description"}}
	if c := Problems(good); len(c) != 0 {
		t.Errorf("problems of a good list: %q", c)
	}
	for _, bad := range [][]Entry{
		{{"a", Tested, nil, ""}},
		{{"a", NotYet, nil, ""}},
		{{"a", NotApplicable, nil, ""}},
		{{"a", NotYet, []string{"x.TestY"}, "why"}},
		{{"a", "", nil, ""}},
		{{"b", NotYet, nil, "x"}, {"a", NotYet, nil, "x"}},
		{{"a", NotYet, nil, "x"}, {"a", NotYet, nil, "x"}},
	} {
		if c := Problems(bad); len(c) != 1 {
			t.Errorf("%v: problems %q, want one", bad, c)
		}
	}
}

func TestRender(t *testing.T) {
	b := render([]Entry{{"gone", NotYet, nil, "x"}, {"kept", Tested, []string{"p.TestA", "p.TestB"}, "a, b"}},
		[]string{"kept", "new"})
	if want := "file,state,tests,note\nkept,tested,p.TestA p.TestB,\"a, b\"\nnew,,,\n"; string(b) != want {
		t.Errorf("rendered\n%swant\n%s", b, want)
	}
	entries, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := render(entries, []string{"kept", "new"}); !bytes.Equal(again, b) {
		t.Errorf("read and rendered again\n%s", again)
	}
}
