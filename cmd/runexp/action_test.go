package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A workflow is what TestGitHubAction reads of a workflow of GitHub's.
type workflow struct {
	Jobs map[string]struct {
		Env   map[string]string
		Steps []struct {
			Name, Uses, Run, If string
			Env                 map[string]string
			With                map[string]string
		}
	}
}

const actionYAML = `name: x
axes:
  method:
    constant: {uses: attribute/constant}
    random: {uses: attribute/random}
stages:
  images: {uses: dataset/shapes, with: {count: 4, size: 32}}
  maps: {uses: "${method}", matrix: [method], in: {images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  table: {uses: report/table, in: {values: mass}, over: all, with: {rows: [method]}}
publish: [table]
`

// TestGitHubAction takes the steps of the example as scripts, in the repository of a pull request that
// changes a parameter: pip and gh only write down how they are called.
func TestGitHubAction(t *testing.T) {
	b, err := os.ReadFile("../../experiments/examples/github-action.yml")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`pypi|https?://`).Find(b); m != nil {
		t.Errorf("it names %s", m)
	}
	for _, c := range []struct {
		name      string
		committed bool   // the base has results
		edit      string // of the experiment, in the pull request
		claim     bool   // the pull request's committed results are wrong
		comment   []string
		fails     string // the step that ends with an error
	}{
		{name: "changed", committed: true, edit: "attribute/random, with: {distribution: normal}",
			comment: []string{"### `artifacts/x at ", "\n\nrandom changed in its only score, of fewer than 6",
				"no other method's scores changed", "maps.distribution"}},
		{name: "same", committed: true, edit: "attribute/random",
			comment: []string{"1 of 1 review folders are as in "}},
		{name: "first", edit: "attribute/random", comment: []string{"The base has no results yet."}},
		{name: "claim", committed: true, edit: "attribute/random", claim: true, fails: "Run",
			comment: []string{"### `artifacts/x at "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"x.yaml": actionYAML, ".gitignore": ".runexp\ncalls\nbin\n"})
			w.git("init", "-q")
			if c.committed {
				w.run(0, "run", "x.yaml", "--quiet")
			}
			w.git("add", ".")
			w.git("commit", "-q", "-m", "base")
			base := strings.TrimSpace(w.git("rev-parse", "HEAD"))
			w.write("x.yaml", []byte(strings.Replace(actionYAML, "attribute/random", c.edit, 1)))
			if c.claim {
				table := "artifacts/x/tables/table.csv"
				w.write(table, []byte(strings.Replace(w.read(table), "constant,0", "constant,9", 1)))
				cells := "artifacts/x/cells/mass.jsonl"
				w.write(cells, []byte(strings.Replace(w.read(cells), `"mean":0`, `"mean":9`, 1)))
			}
			for _, name := range []string{"pip", "gh"} {
				w.write("bin/"+name, []byte("#!/bin/sh\necho "+name+" \"$@\" >> calls\n"))
				if err := os.Chmod(w.path("bin/"+name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			failed := w.steps(b, map[string]string{
				"github.event.pull_request.base.sha": base, "github.event.pull_request.number": "12",
				"github.token": "token", "github.run_id": "1"})
			if failed != c.fails {
				t.Errorf("the step %q failed, want %q", failed, c.fails)
			}
			want := "pip install ./wheels/runexp_xai-0.1.0-py3-none-manylinux_2_28_x86_64.whl[cpu]\n" +
				"gh pr comment 12 --edit-last --create-if-none --body-file diff.md\n"
			if got := w.read("calls"); got != want {
				t.Errorf("called:\n%swant:\n%s", got, want)
			}
			text := w.read("diff.md")
			for _, part := range c.comment {
				if !strings.Contains(text, part) {
					t.Errorf("the comment lacks %q:\n%s", part, text)
				}
			}
			if w.read("summary.md") != text {
				t.Error("the job's summary isn't the comment")
			}
			if page := w.read("review.html"); strings.Contains(page, `"changes":{`) != c.committed {
				t.Errorf("the attached page compares with the base: %v", !c.committed)
			}
		})
	}
}

// steps takes the steps of a workflow as its runner does, and returns the name of the first one that fails:
// those after it are left out but for the ones that are always taken.
func (w *world) steps(text []byte, context map[string]string) (failed string) {
	w.Helper()
	var flow workflow
	if err := yaml.Unmarshal(text, &flow); err != nil {
		w.Fatal(err)
	}
	job := flow.Jobs["review"]
	job.Env["EXPERIMENT"], job.Env["FOLDER"] = "x.yaml", "artifacts/x"
	expression := regexp.MustCompile(`\$\{\{ *([\w.]+) *\}\}`)
	value := func(s string) string {
		return expression.ReplaceAllStringFunc(s, func(e string) string {
			v, ok := context[expression.FindStringSubmatch(e)[1]]
			if !ok {
				w.Errorf("the workflow reads %s", e)
			}
			return v
		})
	}
	for _, step := range job.Steps {
		switch {
		case step.Run == "":
			if path := step.With["path"]; strings.HasPrefix(step.Uses, "actions/upload-artifact@") {
				w.read(path)
			}
			continue
		case failed != "" && step.If != "${{ !cancelled() }}":
			continue
		case strings.Contains(step.Run, "${{"):
			w.Errorf("the script of %s has an expression: a title or branch could be code", step.Name)
		}
		cmd := w.prepare("bash", "-e", "-c", step.Run)
		cmd.Env = append(cmd.Env, "PATH="+w.path("bin")+string(filepath.ListSeparator)+os.Getenv("PATH"),
			"GITHUB_STEP_SUMMARY="+w.path("summary.md"))
		for _, env := range []map[string]string{job.Env, step.Env} {
			for name, v := range env {
				cmd.Env = append(cmd.Env, name+"="+value(v))
			}
		}
		if out, err := cmd.CombinedOutput(); err != nil && failed == "" {
			w.Logf("%s: %v\n%s", step.Name, err, out)
			failed = step.Name
		}
	}
	return failed
}
