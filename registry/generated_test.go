package registry

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Files made from the declarations of stages. When this test fails, run "make generate" and inspect the diff.
var update = flag.Bool("update", false, "rewrite the generated files")

func TestGeneratedSchema(t *testing.T) {
	current(t, "../experiments/schema.json", func(string) string { return string(Builtin().Schema()) })
}

func TestGeneratedTableInReadme(t *testing.T) {
	const begin, end = "<!-- made by make generate: stages -->\n", "<!-- end -->\n"
	current(t, "../README.md", func(old string) string {
		head, rest, ok1 := strings.Cut(old, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("README.md has no lines %q and %q", begin, end)
		}
		return head + begin + Builtin().Markdown() + end + tail
	})
}

func current(t *testing.T, path string, made func(old string) string) {
	t.Helper()
	old, err := os.ReadFile(path)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	want := made(string(old))
	if want == string(old) {
		return
	}
	if !*update {
		t.Fatalf("%s isn't what the declarations say: run make generate", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

var link = regexp.MustCompile(`\]\(([^):#]+)\)`)

func TestReadme(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range link.FindAllStringSubmatch(string(b), -1) {
		if _, err := os.Stat("../" + m[1]); err != nil {
			t.Errorf("README.md links to %s, which isn't there", m[1])
		}
	}
	if n := strings.Count(string(b), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, more than a newcomer reads", n)
	}
	if !strings.Contains(string(b), "```sh\nmake demo ") {
		t.Error("make demo isn't README.md's first command")
	}
}
