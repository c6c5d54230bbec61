package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// TestDocsLanguage checks every example of docs/language.md. One without a name is laid over base.yaml, as
// the page tells its readers. What follows an example of an error is what check reports of it.
func TestDocsLanguage(t *testing.T) {
	if inUndetected(t) {
		return
	}
	runtimeOrSkip(t)
	p := openPage(t, "language.md")
	defer p.close()
	for _, net := range []string{"vgg", "resnet"} {
		p.write("quickstart/"+net+".onnx", []byte(page(t, "experiments/quickstart/"+net+".onnx")))
	}
	var reported, file string // of the last example
	examples := 0
	for _, f := range fencesOf(p.text) {
		kind, named, _ := strings.Cut(f.info, " ")
		switch kind {
		case "yaml":
			examples++
			body := f.body
			if file = named; file == "" || named == "error" {
				file = fmt.Sprintf("example-%d.yaml", f.line)
			}
			if !regexp.MustCompile(`(?m)^name:`).MatchString(body) {
				body += fmt.Sprintf("name: example-%d\nextends: base.yaml\n", f.line)
			}
			p.write(file, []byte(body))
			x, err := plan.Load(p.path(file), registry.Builtin(), plan.Overrides{})
			reported = ""
			var ds plan.Diags
			switch {
			case named != "error" && err != nil:
				t.Errorf("%s:%d: %v", p.file, f.line, err)
			case named == "error" && !errors.As(err, &ds):
				t.Errorf("%s:%d: no error", p.file, f.line)
			case err == nil && len(x.Warnings) > 0:
				t.Errorf("%s:%d: %v", p.file, f.line, x.Warnings)
			}
			for _, d := range ds {
				d.File = "x.yaml"
				reported += d.String() + "\n"
			}
		case "text":
			if reported == "" {
				t.Errorf("%s:%d: there is no error to report", p.file, f.line)
			}
			if *update {
				p.replace(f, reported)
			} else if f.body != reported {
				t.Errorf("%s:%d: check reports\n%s", p.file, f.line, reported)
			}
			reported = "" // only once
		case "console":
			p.console(f)
		}
		if reported != "" && kind != "yaml" {
			t.Errorf("%s:%d: the report of the error is missing", p.file, f.line)
		}
	}
	if examples < 19 {
		t.Errorf("%d examples", examples)
	}
}

// TestLanguageIsComplete checks that the page explains every key, and that what help language prints has
// them all.
func TestLanguageIsComplete(t *testing.T) {
	var schema struct {
		Properties map[string]any
		Defs       struct {
			Stage, Choice struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(registry.Builtin().Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	text := page(t, "docs/language.md")
	var help strings.Builder
	if code := newUI(&help, &help).start([]string{"help", "language"}); code != exitDone {
		t.Fatal(help.String())
	}
	keys := 0
	for _, properties := range []map[string]any{schema.Properties, schema.Defs.Stage.Properties,
		schema.Defs.Choice.Properties, {"if": nil, "missing": nil, "store": nil}} {
		for key := range properties {
			keys++
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, "`"+key+":") {
				t.Errorf("docs/language.md doesn't explain %s", key)
			}
			if !regexp.MustCompile(`\b` + key + `:`).MatchString(help.String()) {
				t.Errorf("help language doesn't have %s", key)
			}
		}
	}
	if keys < 20 {
		t.Errorf("%d keys", keys)
	}
}

// TestReadmeExample checks the experiment in README.md, and that its answer is the quickstart's.
func TestReadmeExample(t *testing.T) {
	text, examples := page(t, "README.md"), 0
	for _, f := range fencesOf(text) {
		if f.info != "yaml" {
			continue
		}
		examples++
		x, err := plan.Parse("README.md", []byte(f.body), "../../experiments", registry.Builtin(),
			plan.Overrides{})
		if err != nil {
			t.Errorf("README.md:%d: %v", f.line, err)
		} else if missing := x.Missing(); len(x.Warnings)+len(missing) > 0 {
			t.Errorf("README.md:%d: %v %v", f.line, x.Warnings, missing)
		}
	}
	quote := regexp.MustCompile(`(?s)> (\*\*.*?\.)\n`).FindStringSubmatch(text)
	if examples != 1 || quote == nil {
		t.Fatalf("README.md has %d experiments, and the answer %q", examples, quote)
	}
	answer := strings.ReplaceAll(quote[1], "\n> ", " ")
	if !strings.Contains(page(t, "artifacts/quickstart/README.md"), answer) {
		t.Errorf("README.md has %q, which isn't the quickstart's answer", answer)
	}
}
