package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runexp/runexp/registry"
)

const module = "github.com/runexp/runexp/"

const families = "dataset|mosaic|model|attribute|maps|perturb|segments|score|stats|fuse|report|function"

// The picture of the house: who may not import whom, not even through others. cmd → registry →
// stages/<family> → stages, and cmd → pipeline → stages.
var forbidden = []struct {
	from, to string // patterns of import paths below the module's
	direct   bool   // only what the package itself imports
	reason   string
	except   string // a package that may
}{
	{`pipeline(/.*)?`, `registry`, false, "the engine doesn't know what stages there are", ""},
	{`pipeline(/.*)?`, `stages/(` + families + `|ort|internal/.+|stagetest)`, false,
		"the engine doesn't know any stage, nor what stages compute with", ""},
	{`pipeline(/.*)?`, `cmd/.*`, false, "the engine is used by the command", ""},
	{`pipeline(/(plan|store|device|publish))?`, `pipeline/progress`, false,
		"the engine emits events, and doesn't show them", ""},
	{`pipeline(/(plan|store|device|publish|progress))?`, `pipeline/fetch`, false,
		"what an experiment names by address is planned and read as the file it is fetched to", ""},
	{`pipeline/fetch`, `pipeline(/(plan|store|device|publish|progress))?`, false,
		"fetching knows addresses, and nothing of experiments", ""},
	{`pipeline/plan`, `pipeline/(store|device|publish|progress)`, false,
		"an experiment is checked and planned without store or device", ""},
	{`pipeline(/(execute|resolve|schedule|key))?`, `pipeline/(publish|results)`, false,
		"the engine finds results, and publishes none", ""},
	{`pipeline/schedule`, `pipeline/(store|device|key|resolve|execute)`, false,
		"the schedule is pure", ""},
	{`pipeline/key`, `pipeline/(device|resolve|execute|schedule)`, false,
		"a key is made of values, whatever the run", ""},
	{`pipeline/resolve`, `pipeline/(execute|schedule)`, false,
		"what is stored doesn't depend on what runs", ""},
	{`pipeline/execute`, `pipeline`, false, "jobs are executed for any loop", ""},
	{`pipeline/typeset`, `pipeline(/.*)?`, false, "tables are written without a run or a folder", ""},
	{`pipeline/(plan|store|device|publish)`, `pipeline`, false, "the engine's parts don't know the whole",
		""},
	{`stages(/.*)?`, `pipeline(/.*)?`, false, "stages run under any engine", ""},
	{`stages(/.*)?`, `registry`, false, "stages don't know the list of them", ""},
	{`stages(/.*)?`, `cmd/.*`, false, "stages don't know the command", ""},
	{`registry`, `pipeline(/.*)?`, false, "the table of contents doesn't run anything", ""},
	{`registry`, `cmd/.*`, false, "the table of contents is used by the command", ""},
	{`stages`, `stages/.+`, false, "the contract comes before the work", ""},
	{`stages/internal/.*`, `stages/(` + families + `)`, false,
		"families use what is internal, not the reverse", "stages/internal/modeltest"},
	{`stages/interval`, `.+`, false, "stages and engine share it", ""},
	{`stages/thumbnail`, `stages/.+|pipeline(/.*)?`, false, "stages and engine share it", ""},
	{`stages/spans`, `stages/.+|pipeline(/.*)?`, false, "stages and engine share it", "stages/stagetest"},
	{`stages/ort`, `stages/internal/(program|variant|lower|relevance|rewrite|modelfile)`, false,
		"ONNX Runtime runs any program", ""},
	{`cmd/runexp`, `stages/(` + families + `|internal/.+)`, true,
		"the command borrows from families through registry", ""},
}

// imports returns what the packages that a pattern names, and those that they import, import, tests apart.
func imports(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}",
		pattern)
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

// rooms are the groups of packages in the picture, by patterns of import paths below the module's.
var rooms = []struct{ name, packages string }{
	{"command", `cmd/runexp|experiments`},
	{"list of stages", `registry`},
	{"pages", `docs`},
	{"publishing", `pipeline/(results|publish|typeset|webpage|appendix)`},
	{"engine", `pipeline(/(execute|resolve|schedule|key|progress))?`},
	{"language", `pipeline/plan`},
	{"store and devices", `pipeline/(store|device)`},
	{"addresses", `pipeline/fetch`},
	{"stages", `stages/(` + families + `)`},
	{"compiler", `stages/internal/(program|variant|lower|relevance|rewrite|standalone|target|textnet)`},
	{"ONNX Runtime", `stages/ort`},
	{"ONNX files", `stages/internal/(onnx(/.+)?|modelfile)`},
	{"helpers of stages", `stages/internal/.+|python`},
	{"contract", `stages(/(interval|spans|thumbnail))?`},
}

// room returns that of a package, -1 for none.
func room(name string) int {
	for i, r := range rooms {
		if regexp.MustCompile("^(" + r.packages + ")$").MatchString(name) {
			return i
		}
	}
	return -1
}

var update = flag.Bool("update", false, "rewrite the picture in docs/architecture.md")

// TestArchitecture holds docs/architecture.md to the packages, files and tests that there are. When the
// picture isn't theirs any more, run "make generate".
func TestArchitecture(t *testing.T) {
	const file = "../../docs/architecture.md"
	const begin, end = "<!-- made by make generate: packages -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	head, rest, ok1 := strings.Cut(page, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines %q and %q", file, begin, end)
	}
	if now := head + begin + picture(t, imports(t, "./cmd/runexp")) + end + tail; now != page {
		if !*update {
			t.Errorf("the picture in %s isn't what go list reports: run make generate", file)
		} else if err := os.WriteFile(file, []byte(now), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(head+tail, "\n"); n > 100 {
		t.Errorf("%s has %d lines without the picture, more than a page", file, n)
	}
	for _, m := range regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`).FindAllStringSubmatch(page, -1) {
		b, err := os.ReadFile(filepath.Join("../../docs", m[2]))
		if err != nil && !errors.Is(err, syscall.EISDIR) {
			t.Errorf("%s: %v", file, err)
		}
		_, name, hop := strings.Cut(m[1], ":") // file.go:function
		if strings.HasPrefix(m[1], "Test") {
			name, hop = m[1], true
		}
		if hop && !regexp.MustCompile(`(?m)^func (\(.*\) )?`+name+`\(`).Match(b) {
			t.Errorf("%s: %s has no %s", file, m[2], name)
		}
	}
}

// picture draws who imports whom among the rooms, as Mermaid, without what follows from other arrows.
func picture(t *testing.T, all map[string][]string) string {
	arrows, members := make([]map[int]bool, len(rooms)), make([][]string, len(rooms))
	for i := range rooms {
		arrows[i] = map[int]bool{}
	}
	for pkg, list := range all {
		name, ours := strings.CutPrefix(pkg, module)
		if !ours {
			continue
		}
		from := room(name)
		if from < 0 {
			t.Fatalf("package %s is in no room of the picture", name)
		}
		members[from] = append(members[from], path.Base(name))
		for _, imported := range list {
			if to, ours := strings.CutPrefix(imported, module); ours && room(to) != from {
				arrows[from][room(to)] = true
			}
		}
	}
	var reaches func(from, to int, seen []bool) bool
	reaches = func(from, to int, seen []bool) bool {
		if from == to {
			return true
		}
		seen[from] = true
		for next := range arrows[from] {
			if !seen[next] && reaches(next, to, seen) {
				return true
			}
		}
		return false
	}
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for i, r := range rooms {
		slices.Sort(members[i])
		label := strings.Join(slices.Compact(members[i]), ", ")
		if label != r.name {
			label = r.name + "<br/>" + label
		}
		fmt.Fprintf(&b, "  r%d[\"%s\"]\n", i, label)
	}
	for i := range rooms {
		for j := range rooms {
			direct := arrows[i][j]
			for next := range arrows[i] {
				if direct && next != j && reaches(next, i, make([]bool, len(rooms))) {
					t.Errorf("%s and %s import each other", rooms[i].name, rooms[next].name)
				}
				direct = direct && (next == j || !reaches(next, j, make([]bool, len(rooms))))
			}
			if direct {
				fmt.Fprintf(&b, "  r%d --> r%d\n", i, j)
			}
		}
	}
	return b.String() + "```\n"
}

// TestVerbsAreListed: every verb that a file declares is in the list of verbs.
func TestVerbsAreListed(t *testing.T) {
	list, err := os.ReadFile("verb.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		verbs := regexp.MustCompile(`(?m)^func (\w+Verb)\(.*\) \*verb`)
		for _, m := range verbs.FindAllStringSubmatch(string(b), -1) {
			if !strings.Contains(string(list), m[1]+",") {
				t.Errorf("%s: the list of verbs in verb.go lacks %s", file, m[1])
			}
		}
	}
}

func TestImportPicture(t *testing.T) {
	all := imports(t, "./...")
	pure := []string{"cmp", "slices", module + "pipeline/plan", "github.com/runexp/runexp/stages"}
	for _, imported := range all[module+"pipeline/schedule"] {
		if !slices.Contains(pure, imported) {
			t.Errorf("the schedule imports %s: it is pure", imported)
		}
	}
	for _, rule := range forbidden {
		from, to := regexp.MustCompile("^"+rule.from+"$"), regexp.MustCompile("^"+rule.to+"$")
		for pkg := range all {
			name, ours := strings.CutPrefix(pkg, module)
			if !ours || name == rule.except || !from.MatchString(name) {
				continue
			}
			if way := chain(all, pkg, to, rule.direct, map[string]bool{}); way != nil {
				t.Errorf("%s: %s", strings.Join(way, " → "), rule.reason)
			}
		}
	}
}

// chain returns a chain of imports from pkg to a package that to matches, or nil.
func chain(all map[string][]string, pkg string, to *regexp.Regexp, direct bool,
	seen map[string]bool) []string {
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
		if way := chain(all, next, to, direct, seen); way != nil {
			return append([]string{pkg}, way...)
		}
	}
	return nil
}

func TestImportersOfModules(t *testing.T) {
	only := map[string]string{
		"github.com/yalue/onnxruntime_go":                 module + "stages/ort",
		"github.com/schollz/progressbar/v3":               module + "pipeline/progress",
		"google.golang.org/protobuf/reflect/protoreflect": module + "stages/internal/onnx/onnxpb",
	}
	all := imports(t, "./...")
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

// flat lists the packages with one file for each operator, rule, pass, method, metric or verb.
var flat = []string{"cmd/runexp", "stages/attribute", "stages/internal/lower", "stages/internal/relevance",
	"stages/internal/rewrite", "stages/score"}

// TestPackagesAreSmall checks that other packages have at most 30 files without tests.
func TestPackagesAreSmall(t *testing.T) {
	const most = 30
	cmd := exec.Command("go", "list", "-f", "{{.ImportPath}} {{len .GoFiles}} {{len .CgoFiles}}", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var pkg string
		var files, withC int
		if _, err := fmt.Sscan(s.Text(), &pkg, &files, &withC); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(pkg, module)
		if files+withC > most && !slices.Contains(flat, name) {
			t.Errorf("%s has %d files, at most %d are easily found: divide it", name, files+withC, most)
		}
	}
}

// named matches the names of files in a package comment: render_*.go, or in a list a bare render, followed by
// a mark or wide space.
var named = regexp.MustCompile(`(?m)(?:^|[\s(])([\w*]*\*[\w*]*|\w+\.go|\w+(?:[,;:.)]|  |\t|$))`)

// TestPackageCommentsNameFiles checks that the comment of each package of several files names every other
// file, as docs/architecture.md promises. A file with the name of its stage or verb needs no mention.
func TestPackageCommentsNameFiles(t *testing.T) {
	const several = 8
	listed := map[string]bool{}
	for _, name := range registry.Builtin().Names() {
		listed["stages/"+strings.ReplaceAll(name, "-", "_")+".go"] = true
	}
	for _, v := range verbs() {
		listed["cmd/runexp/"+v.name+".go"] = true
	}
	files, comments := map[string][]string{}, map[string]string{}
	for file, b := range projectFiles(t) {
		dir, name := path.Split(file)
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(dir, ".") {
			continue
		}
		const head = parser.PackageClauseOnly | parser.ParseComments
		f, err := parser.ParseFile(token.NewFileSet(), file, b, head)
		if err != nil {
			t.Fatal(err)
		}
		dir = path.Clean(dir)
		if comments[dir] += f.Doc.Text(); f.Doc == nil && !listed[file] {
			files[dir] = append(files[dir], name)
		}
	}
	for dir, list := range files {
		if len(list) < several {
			continue
		}
		if missing := unnamed(comments[dir], list); len(missing) > 0 {
			t.Errorf("the comment of package %s doesn't name %s", dir, strings.Join(missing, ", "))
		}
	}
}

// unnamed returns the files that a package comment doesn't name, sorted.
func unnamed(comment string, files []string) (missing []string) {
	var patterns []string
	for _, m := range named.FindAllStringSubmatch(comment, -1) {
		name := strings.TrimSuffix(strings.TrimRight(m[1], ",;:.) \t"), ".go")
		patterns = append(patterns, name+".go")
	}
	for _, file := range files {
		matches := func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok }
		if !slices.ContainsFunc(patterns, matches) {
			missing = append(missing, file)
		}
	}
	slices.Sort(missing)
	return missing
}
