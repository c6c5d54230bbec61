package stagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// LaTeX compiles one of some files, given by their slash-separated paths, where pdflatex is installed: make
// test-latex needs it.
func LaTeX(t testing.TB, files map[string][]byte, document string) {
	t.Helper()
	pdflatex, err := exec.LookPath("pdflatex")
	if err != nil {
		if os.Getenv("RUNEXP_LATEX") != "" {
			t.Fatal(err)
		}
		t.Log("pdflatex isn't installed: only the syntax is checked")
		return
	}
	dir := t.TempDir()
	for name, b := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(pdflatex, "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", document)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, files[document], out[max(0, len(out)-3000):])
	}
}
