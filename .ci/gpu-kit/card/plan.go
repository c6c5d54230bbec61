package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/runexp/runexp/stages/ort"
)

// A step is a process and what its lines tell.
type step struct {
	what    string // as the table calls it
	who     string // webgpu, cuda, PyTorch or captum
	net     string
	limit   time.Duration
	command []string
	env     []string
	fact    bool   // its first lines are a fact of the machine
	in      string // " in PRECISION", of a step in another than float32
}

func (s step) String() string {
	text := s.what
	if s.net != "" {
		text += " of " + s.net
	}
	return text + ", " + s.who
}

// Batches are tried in this order: the best is usually among the first.
const (
	allBatches   = "64,256,16,1,128,32,8,4,2"
	smallBatches = "2,1"
)

// firstStages stand for the kinds of programs: forward passes, gradients, relevance, and a curve.
const firstStages = "model/predict,attribute/saliency,attribute/lrp-epsilon,perturb/deletion"

// plan returns the steps, the most telling first.
func (r *run) plan(ctx context.Context) []step {
	resnet, vit, batches := "resnet50", "vit_b_16", allBatches
	trained := []string{"resnet", "vgg", "vit"} // of the quickstart
	if r.rehearse {
		resnet, vit, batches = "resnet_tiny", "vit_tiny", smallBatches
		trained = []string{resnet, vit}
	}
	each := 20.0 // seconds of a task's batches: 20 or 30 tasks are in the whole plan, and have inputs to make
	if deadline, ok := ctx.Deadline(); ok {
		each = min(25, max(2, time.Until(deadline).Seconds()/36))
	}
	slack := 30 * time.Second // of a process, whose inputs are made and whose last batch may begin late
	if r.rehearse {
		slack = 2 * time.Minute // an adapter in software takes a minute to load a program
	}

	var steps []step
	ours := func(s step, args ...string) {
		for _, class := range r.classes {
			s.who, s.env = class, r.machine.env(class)
			s.command = append([]string{r.tool("card"), args[0], class}, args[1:]...)
			steps = append(steps, s)
		}
	}
	parity := func(what, net, stages string) {
		ours(step{what: what, net: net, limit: time.Minute + slack}, "parity", net, stages)
	}
	rounding := func(net string) {
		for _, class := range r.classes {
			for _, p := range ort.ProviderOf(class).Precisions {
				steps = append(steps, step{what: "rounding in " + p.Name, who: class, net: net,
					limit: time.Minute + slack, in: " in " + p.Name, env: r.machine.env(class),
					command: []string{r.tool("card"), "rounding", class, net, p.Name}})
			}
		}
	}
	speed := func(net string, tasks ...string) {
		limit := duration(each) + slack
		for _, t := range tasks {
			args := []string{net, t, fmt.Sprintf("%.0f", each), batches}
			ours(step{what: t, net: net, limit: limit}, append([]string{"speed"}, args...)...)
			if !r.machine.torchRuns(r.rehearse) {
				continue
			}
			command := append([]string{r.machine.python, "-W", "ignore", r.tool("python/torch_times.py")},
				append(args, r.machine.torchDevice(r.rehearse))...)
			steps = append(steps, step{what: t, who: theirs(t), net: net, limit: limit,
				env: r.machine.env("torch"), command: command})
		}
	}

	for _, class := range r.classes {
		steps = append(steps, step{what: "doctor", who: class, limit: 30 * time.Second, fact: true,
			command: []string{r.tool("runexp"), "doctor"}, env: r.machine.env(class)})
	}
	parity("parity of four stages", trained[0], firstStages)
	rounding(trained[0])
	speed(resnet, "gradient", "deletion", "ig-50", "lrp")
	speed(vit, "gradient", "deletion")
	for _, net := range trained[1:] {
		rounding(net)
	}
	for _, net := range trained {
		parity("parity", net, "all")
	}
	speed(vit, "ig-50", "lrp")
	speed(resnet, "rise")
	speed(vit, "rise")
	for _, class := range r.classes {
		dir := filepath.Join(r.machine.temp, "quickstart-"+class)
		steps = append(steps, step{what: "quickstart on 2 images", who: class, limit: time.Minute,
			env: r.machine.env(class), command: []string{r.tool("runexp"), "run", r.tool("quickstart.yaml"),
				"--devices", class, "--limit", "2", "--partial", "--store", dir + "/store", "--out",
				dir + "/out"}})
	}
	return steps
}

// theirs names what a task is compared with: captum where it has the method.
func theirs(task string) string {
	if task == "ig-50" || task == "lrp" {
		return "captum"
	}
	return "PyTorch"
}

// tool returns the path of a program or file of the kit.
func (r *run) tool(name string) string {
	return filepath.Join(r.kit, "webgpu", filepath.FromSlash(name))
}
