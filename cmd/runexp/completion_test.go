package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletion has bash complete command lines.
func TestCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	var script strings.Builder
	if code := newUI(&script, os.Stderr).start([]string{"completion", "bash"}); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	dir := t.TempDir()
	for _, name := range []string{"mine.yaml", "with space.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	complete := func(words ...string) []string {
		t.Helper()
		const ask = `COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _runexp; printf '%s\n' "${COMPREPLY[@]}"`
		args := append([]string{"--norc", "-c", script.String() + ask, "bash"}, words...)
		cmd := exec.Command(bash, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	for line, want := range map[string]string{
		"runexp pl":              "plan",
		"runexp r":               "recommend review run",
		"runexp help che":        "check",
		"runexp help met":        "methods metrics",
		"runexp cache g":         "gc",
		"runexp completion z":    "zsh",
		"runexp new q":           "quickstart",
		"runexp stages fuse/met": "fuse/meta-rank",
		"runexp run --fail":      "--fail-fast",
		"runexp run mi":          "mine.yaml",
		"runexp run --store mi":  "mine.yaml",
		"runexp run w":           "with space.yaml",
		"runexp run --devices c": "cpu cuda",
		"runexp get mine.yaml -": "--allow-python --as --batch --chunk --columns --compare --devices " +
			"--help --limit --only --onnxruntime --port --precision --rows " +
			"--same-device --set --store --values -o",
	} {
		got := complete(strings.Split(line, " ")...)
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	for _, v := range verbs() {
		for _, f := range complete("runexp", v.name, "-") {
			if f != "--help" && v.flags[f] == nil {
				t.Errorf("%s has no flag %s", v.name, f)
			}
		}
	}
	if zsh, err := exec.LookPath("zsh"); err == nil {
		script.Reset()
		newUI(&script, os.Stderr).start([]string{"completion", "zsh"})
		text := "autoload -U compinit; compinit -u -D\n" + script.String()
		if out, err := exec.Command(zsh, "-f", "-c", text).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("zsh: %v\n%s", err, out)
		}
	}
}
