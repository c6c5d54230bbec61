package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedPhotos returns a world with five photographs and the experiment that shows their maps.
func sharedPhotos(t testing.TB) *world {
	w := newWorld(t, map[string]string{"photos.yaml": photosYAML})
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		w.picture("photos/"+name+".bmp", i+1)
	}
	w.list("a", "b", "c", "d", "e")
	return w
}

// TestSharesOfPhotos holds that shares make the folder of one run, that closing tells what they left, and
// that an image that changed between two shares is missing rather than mixed with what it was.
func TestSharesOfPhotos(t *testing.T) {
	one := sharedPhotos(t)
	one.run(0, "run", "photos.yaml")

	w := sharedPhotos(t)
	w.env = []string{"JOB_COMPLETION_INDEX=2"}
	w.run(0, "run", "photos.yaml", "--share", "/3")
	e := w.run(1, "run", "photos.yaml", "--share", "close")
	if !strings.Contains(e.stderr, "images: ") || !strings.Contains(e.stderr, " items are missing") {
		t.Errorf("closing says %q", e.stderr)
	}
	if _, err := os.Stat(w.path("artifacts")); err == nil {
		t.Error("a wave that lacks items publishes")
	}
	w.env = []string{"SLURM_ARRAY_TASK_ID=0"}
	w.run(0, "run", "photos.yaml", "--share", "/3")
	w.env = nil
	w.run(0, "run", "photos.yaml", "--share", "1/3")
	w.run(0, "run", "photos.yaml", "--share", "close")
	same(t, one.path("artifacts"), w.path("artifacts"))
	if e = w.run(0, "run", "photos.yaml", "--json"); len(e.executed(t)) > 0 {
		t.Errorf("a run afterwards executes %v", e.executed(t))
	}

	w = sharedPhotos(t)
	for k := range 3 {
		w.run(0, "run", "photos.yaml", "--share", fmt.Sprintf("%d/3", k))
	}
	w.picture("photos/b.bmp", 9)
	w.run(1, "run", "photos.yaml", "--share", "close")
	for k := range 3 {
		w.run(0, "run", "photos.yaml", "--share", fmt.Sprintf("%d/3", k))
	}
	w.run(0, "run", "photos.yaml", "--share", "close")
	one.picture("photos/b.bmp", 9)
	one.run(0, "run", "photos.yaml")
	same(t, one.path("artifacts"), w.path("artifacts"))
}

// TestShareIsDrained holds that a share that a signal stops ends with the code that has it queued again.
func TestShareIsDrained(t *testing.T) {
	w := newWorld(t, map[string]string{"many.yaml": many})
	if code := w.drain("done", "run", "many.yaml", "--share", "0/1"); code != exitAgain {
		t.Fatalf("a drained share ends with %d, want %d", code, exitAgain)
	}
	w.run(0, "run", "many.yaml", "--share", "0/1")
	w.run(0, "run", "many.yaml", "--share", "close")
}

// TestShareIsNamed holds what --share takes, and what doesn't go with it.
func TestShareIsNamed(t *testing.T) {
	w := newWorld(t, map[string]string{"x.yaml": many})
	for args, want := range map[string]string{
		"--share 3/3":             "--share is 3, and shares of 3 are from 0 to 2",
		"--share /3":              "$SLURM_ARRAY_TASK_ID or $JOB_COMPLETION_INDEX, and none is set",
		"--share -1/3":            "neither k/M",
		"--share 1":               "neither k/M",
		"--share 1/0":             "neither k/M",
		"--share open":            "nor close",
		"--share 0/2 --accept":    "a share publishes nothing",
		"--share 0/2 --out x":     "a share publishes nothing",
		"--share close --force x": "--force is for a run",
	} {
		e := w.run(2, append([]string{"run", "x.yaml"}, strings.Fields(args)...)...)
		if !strings.Contains(e.stderr, want) {
			t.Errorf("%s: %q doesn't say %q", args, e.stderr, want)
		}
	}
	w.env = []string{"SLURM_ARRAY_TASK_ID=7"}
	e := w.run(2, "run", "x.yaml", "--share", "/7")
	if !strings.Contains(e.stderr, "$SLURM_ARRAY_TASK_ID is 7") {
		t.Errorf("an array of other places: %s", e.stderr)
	}
}

// TestShareTellsWhere holds that a share's log has where it ran, which no result depends on.
func TestShareTellsWhere(t *testing.T) {
	w := sharedPhotos(t)
	w.env = []string{"CUDA_VISIBLE_DEVICES=3", "SLURM_JOB_ID=77", "SLURMD_NODENAME=n5"}
	w.run(0, "run", "photos.yaml", "--share", "0/1")
	logs, err := filepath.Glob(w.path(".runexp/runs/*-0of1.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs: %v, %v", logs, err)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"share":"0/1"`, `"gpu":"3"`, `"job":"77"`, `"node":"n5"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}
