package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const many = `name: many
axes:
  domain: [a, b]
  size: [32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47]
stages:
  images: {uses: dataset/shapes, matrix: [domain, size], with: {count: 100, size: "${size}", domain: "${domain}"}}
publish: [images]
`

// A first interrupt lets what runs finish; the same command goes on from there, and what it publishes is what
// an undisturbed run would have.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "many.yaml")
	if err := os.WriteFile(file, []byte(many), 0o644); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("runexp", "run", "many.yaml", "--json")
	run.Dir = dir
	run.Env = append(os.Environ(), "GOMAXPROCS=2") // so that not everything has begun
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	sent := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !sent && strings.HasPrefix(lines.Text(), `{"event":"done"`) {
			sent = true
			if err := run.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = run.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("an interrupted run ended with %v, want exit code 130\n%s", err, &stderr)
	}
	if !strings.Contains(stderr.String(), "the same command goes on from here") {
		t.Errorf("stderr doesn't say how to continue: %s", &stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "artifacts")); err == nil {
		t.Error("an interrupted run published")
	}

	whole := runexp(t, dir, "run", "many.yaml", "--store", filepath.Join(t.TempDir(), "new"), "--out",
		"whole")
	rest := runexp(t, dir, "run", "many.yaml", "--out", "rest")
	if !strings.Contains(whole, "32 cells to run") || strings.Contains(rest, "32 cells to run") {
		t.Errorf("nothing was kept of the interrupted run: %s", rest)
	}
	same(t, filepath.Join(dir, "whole"), filepath.Join(dir, "rest"))
}

func runexp(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("runexp", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("runexp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// same fails the test unless two folders hold the same files.
func same(t *testing.T, a, b string) {
	t.Helper()
	read := func(root string) map[string]string {
		files := map[string]string{}
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			files[name] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	x, y := read(a), read(b)
	if len(x) == 0 || len(x) != len(y) {
		t.Errorf("%s has %d files, %s %d", a, len(x), b, len(y))
	}
	for name := range x {
		if x[name] != y[name] {
			t.Errorf("%s differs:\n%s\n%s", name, x[name], y[name])
		}
	}
}
