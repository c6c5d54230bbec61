package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// Fakes of what starts shares elsewhere: a machine, and GNU parallel with -j.
const (
	fakeShell    = "#!/bin/sh\nshift\nexec sh -c \"$*\"\n"
	fakeParallel = "#!/bin/sh\nn=$2\nshift 2\nexec xargs -P \"$n\" -I{} \"$@\"\n"
)

// TestDocsCluster executes the commands of docs/cluster.md, with fakes of the programs that start jobs.
func TestDocsCluster(t *testing.T) {
	runtimeOrSkip(t)
	p := openPage(t, "cluster.md")
	defer p.close()
	p.fakeSlurm()
	p.fake("ssh", fakeShell)
	p.fake("parallel", fakeParallel)
	t.Setenv("PATH", p.path("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("CUDA_VISIBLE_DEVICES", "-1")
	calls := p.path("calls")
	t.Setenv("CALLS", calls)
	p.dir = p.path("here")
	p.write("net.onnx", []byte(page(t, "experiments/quickstart/resnet.onnx")))
	writePhotos(p.world)
	commands := 0
	for _, f := range fencesOf(p.text) {
		switch kind, file, _ := strings.Cut(f.info, " "); kind {
		case "yaml":
			p.write(file, []byte(f.body))
			if file == "job.yaml" {
				p.fresh()
				p.indexedJob(f.body)
			}
		case "console":
			if file == "fresh" {
				p.fresh()
			}
			if err := os.RemoveAll(calls); err != nil {
				t.Fatal(err)
			}
			t.Setenv("EXECUTE", "yes")
			commands += strings.Count("\n"+f.body, "\n$ ")
			p.console(f)
		case "sh": // the first of all; what it installs is there
			for _, line := range strings.Split(f.body, "\n") {
				if args := strings.Fields(line); len(args) > 0 && args[0] == "runexp" {
					commands++
					p.run(0, args[1:]...)
				}
			}
		default:
			t.Errorf("%s:%d: what is %q?", p.file, f.line, f.info)
		}
	}
	if b, err := os.ReadFile(calls + ".failed"); err == nil {
		t.Errorf("jobs failed: %s", b)
	}
	if commands < 15 {
		t.Errorf("%d commands", commands)
	}
}

// fresh removes what commands before made.
func (p *docPage) fresh() {
	p.Helper()
	for _, dir := range []string{".runexp", "artifacts"} {
		if err := os.RemoveAll(p.path(dir)); err != nil {
			p.Fatal(err)
		}
	}
}

// indexedJob executes the pods of a Job of Kubernetes.
func (p *docPage) indexedJob(text string) {
	p.Helper()
	var job struct {
		Spec struct {
			Completions int
			Template    struct {
				Spec struct{ Containers []struct{ Command []string } }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &job); err != nil {
		p.Fatal(err)
	}
	command := job.Spec.Template.Spec.Containers[0].Command
	env := p.env
	for k := range job.Spec.Completions {
		p.env = append(env[:len(env):len(env)], fmt.Sprint("JOB_COMPLETION_INDEX=", k))
		p.variation(filepath.Base(command[0]), 0, command[1:]...)
	}
	p.env = env
}
