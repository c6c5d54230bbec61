package main

import (
	"encoding/csv"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// TestPapersOrders runs experiments on Vukadin et al. on a net and images that neither was made for, and
// checks what holds for any: maps that tell nothing have the worst GAE, a constant map the Focus of one half,
// and random maps as much on average.
func TestPapersOrders(t *testing.T) {
	data := stagetest.Shared(t, "data")
	experiments, err := filepath.Abs("../../experiments/papers")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	run := func(name, out string, args ...string) {
		t.Helper()
		images := filepath.Join(data, "images", "cifar10_test_png")
		w.run(0, append([]string{"run", filepath.Join(experiments, name), "--out", w.path(out), "--quiet",
			"--only", "domain=a", "--set", "axes.domain.a.uses=dataset/folder",
			"--set", "axes.domain.a.with={path: " + images + "}"}, args...)...)
	}
	net := filepath.Join(data, "models", "cifar10_resnet20")
	run("abslrp-gae-resnet.yaml", "gae", "--only", "method=constant,random,grad-cam,clrp,abslrp",
		"--set", "images.with.count=64", "--set", "axes.domain.a.net="+net+".onnx",
		"--set", "axes.domain.a.preset=imagenet")
	total := column(t, w.read("gae/tables/scores.csv"), "method", "a Total")
	for _, method := range []string{"grad-cam", "clrp", "abslrp"} {
		for _, nothing := range []string{"constant", "random"} {
			if !(total[nothing] < total[method]) {
				t.Errorf("%s has a GAE of %v, %s of %v", nothing, total[nothing], method, total[method])
			}
		}
	}
	run("abslrp-metrics.yaml", "focus", "--only", "net=vgg", "--only", "method=constant,random",
		"--set", "images.with.count=2", "--set", "pool.with.count=200", "--set", "mosaics.with.count=10",
		"--set", "axes.net.vgg.path="+net, "--set", "axes.net.vgg.preset=imagenet")
	rows, err := csv.NewReader(strings.NewReader(w.read("focus/items/focus.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, row := range rows[1:] {
		var sum, squares float64
		n := float64(len(row) - 1)
		for _, s := range row[1:] {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += x
			squares += x * x
			if strings.Contains(row[0], "method=constant") && x != 0.5 {
				t.Errorf("a constant map has a Focus of %v", x)
			}
		}
		mean := sum / n
		se := math.Sqrt((squares/n - mean*mean) / (n - 1))
		if checked++; n < 100 || !(math.Abs(mean-0.5) <= 3*se) {
			t.Errorf("%s has a Focus of %v ± %v over %v mosaics", row[0], mean, se, n)
		}
	}
	if checked != 2 {
		t.Errorf("%d methods", checked)
	}
}

// column returns the numbers in a column of a table by the texts in another.
func column(t *testing.T, text, key, name string) map[string]float64 {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, c := range rows[0] {
		at[c] = i
	}
	out := map[string]float64{}
	for _, row := range rows[1:] {
		x, err := strconv.ParseFloat(row[at[name]], 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[row[at[key]]] = x
	}
	return out
}
