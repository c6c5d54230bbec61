package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// copiedFolders are what the packages that docs/extending.md changes are built of and checked with.
var copiedFolders = []string{"cmd", "docs", "experiments", "pipeline", "python", "registry", "stages"}

// TestDocsExtending follows docs/extending.md in a copy of the project: it adds the files and lines, makes
// what is generated from stages, adds the texts below the frames, and runs the tests that the page names.
// What the project has already, because a reader follows the page in it, isn't added twice.
func TestDocsExtending(t *testing.T) {
	runtimeOrSkip(t)
	if *update {
		t.Skip("nothing of the page is generated")
	}
	root, text := t.TempDir(), page(t, "docs/extending.md")
	for _, folder := range copiedFolders {
		err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join("../..", folder)))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "README.md"} {
		overwrite(t, filepath.Join(root, name), page(t, name))
	}
	followPage(t, root, text)

	first := regexp.MustCompile(`(?m)^generate:.*\n\tgo (test \./registry .*)$`)
	recipe := first.FindStringSubmatch(page(t, "Makefile"))
	if recipe == nil {
		t.Fatal("make generate doesn't begin with the registry's tests")
	}
	goIn(t, root, strings.Fields(recipe[1])...)
	for _, f := range fencesOf(text) {
		if words := strings.Fields(f.info); len(words) == 3 && words[0] == "markdown" {
			addBelowFrame(t, filepath.Join(root, words[1]), words[2], f.body)
		}
	}

	t.Setenv("RUNEXP_FULL", "1")
	const tests = "^(TestHoyer|TestBuiltinIs.*|TestDefinitions|TestMetricsExist|TestReferences.*|" +
		"TestPagesHaveProse|TestGenerated.*|TestAdjoint|TestMutants|TestMisleads)$/" +
		"^(score|attribute|ReverseSequence|compactness)$"
	out := goIn(t, root, "test", "-vet=off", "-v", "-run", tests, "./stages/score",
		"./stages/internal/relevance", "./registry", "./cmd/runexp")
	for _, test := range []string{"TestHoyer ", "TestBuiltinIsWellFormed/score/hoyer ", "TestDefinitions ",
		"TestBuiltinIsWellFormed/attribute/squared-gradient ", "TestBuiltinIsComplete ", "TestMetricsExist ",
		"TestReferences ", "TestPagesHaveProse ", "TestMisleads/compactness ",
		"TestAdjoint/ReverseSequence/beginnings ", "TestMutants/ReverseSequence"} {
		if !strings.Contains(out, "--- PASS: "+test) {
			t.Errorf("%s wasn't run:\n%s", test, out)
		}
	}
}

// followPage adds a page's files and lines to a copy of the project.
func followPage(t *testing.T, root, text string) {
	t.Helper()
	for _, f := range fencesOf(text) {
		kind, name, _ := strings.Cut(f.info, " ")
		file := filepath.Join(root, name)
		switch kind {
		case "go":
			if b, err := os.ReadFile(file); err == nil && string(b) != f.body {
				t.Errorf("docs/extending.md:%d: there is another %s: choose another example", f.line, name)
			}
			overwrite(t, file, f.body)
		case "diff":
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var old, now strings.Builder
			for line := range strings.Lines(f.body) {
				if line[0] == ' ' {
					old.WriteString(line[1:])
				}
				now.WriteString(line[1:])
			}
			if strings.Contains(string(b), now.String()) {
				continue
			}
			if n := strings.Count(string(b), old.String()); n != 1 {
				t.Errorf("docs/extending.md:%d: %s has %q %d times", f.line, name, old.String(), n)
			}
			overwrite(t, file, strings.Replace(string(b), old.String(), now.String(), 1))
		}
	}
}

// addBelowFrame adds a text below the generated frame of a stage.
func addBelowFrame(t *testing.T, file, stage, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- made by make generate: "+stage+" -->\n", "<!-- end -->\n"
	head, rest, ok1 := strings.Cut(string(b), begin)
	frame, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no frame of %s", file, stage)
	}
	if !strings.HasPrefix(tail, "\n"+text) {
		overwrite(t, file, head+begin+frame+end+"\n"+text+tail)
	}
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// goIn runs the go command in a folder and returns its output. Paths are trimmed, so that packages which the
// copy doesn't change are compiled once for all copies.
func goIn(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
