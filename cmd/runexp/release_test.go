package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRelease checks that all pages are about the release that the command names.
func TestRelease(t *testing.T) {
	first := regexp.MustCompile(`(?m)^## (.*)$`).FindStringSubmatch(page(t, "CHANGELOG.md"))
	if first == nil || first[1] != release {
		t.Errorf("the first entry of CHANGELOG.md is %q, the command is %s", first, release)
	}
	if !strings.Contains(page(t, "CITATION.cff"), "\nversion: "+release+"\n") {
		t.Errorf("CITATION.cff isn't about %s", release)
	}
	wheels := regexp.MustCompile(`runexp_xai-([0-9.]+)-`).FindAllStringSubmatch(page(t, "README.md"), -1)
	for _, w := range wheels {
		if w[1] != release {
			t.Errorf("README.md installs %s, the command is %s", w[1], release)
		}
	}
	if len(wheels) == 0 {
		t.Error("README.md doesn't say how to install the wheel")
	}
}

// TestReadme holds the first page to a length that people read, and to what they can do: the wheel isn't
// published, so every installation is from a file.
func TestReadme(t *testing.T) {
	text := page(t, "README.md")
	if n := strings.Count(text, "\n"); n > 150 {
		t.Errorf("README.md has %d lines", n)
	}
	if p := strings.Split(text, "\n\n"); !strings.Contains(p[2], "(docs/coming-from.md)") {
		t.Errorf("README.md's second paragraph doesn't link docs/coming-from.md: %q", p[2])
	}
	lines := strings.Split(strings.TrimSpace(fencesOf(text)[0].body), "\n")
	verbs := []string{">>> torch.onnx.export(", "$ runexp new ", "$ runexp run ", "$ runexp review "}
	for i, start := range verbs {
		if len(lines) != 4 || !strings.HasPrefix(lines[i], start) {
			t.Fatalf("README.md's first code isn't four lines that export, write, run and show: %q", lines)
		}
	}
	for name := range projectFiles(t) {
		for _, line := range strings.Split(page(t, name), "\n") {
			installs := strings.HasPrefix(line, "pip install") || strings.HasPrefix(line, "uvx ")
			if strings.HasSuffix(name, ".md") && installs && !strings.Contains(line, "./dist/runexp_xai-") {
				t.Errorf("%s: %q isn't possible today", name, line)
			}
		}
	}
}
