package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/stages"
)

// measured returns the first number of each item of maps, as a score with a tolerance of 0.01.
func (l *lab) measured() stages.Stage {
	return stages.New(stages.Def[noParams]{
		Name: "lab/measured", Doc: "scores with a tolerance", Version: 1,
		Inputs:  []stages.Port{{Name: "maps", Type: stages.Maps}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Facts: func(noParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
			return map[string]stages.Facts{"scores": stages.Measure{Tolerance: 0.01}.Facts(nil)}, nil
		},
		Run: func(_ context.Context, _ noParams, e *stages.Env) error {
			for i := range e.Len() {
				e.Put("scores", i, stages.Scalar(first(e.In("maps", i))))
			}
			return nil
		},
	})
}

func offBy(d float64) func(stages.Device, string, float64) ([]byte, error) {
	return func(_ stages.Device, _ string, x float64) ([]byte, error) { return big(x + d), nil }
}

// TestForcedOnAnotherClass holds how a cell that was made by another class of devices compares: within the
// stage's tolerance it's reproduced.
func TestForcedOnAnotherClass(t *testing.T) {
	for d, want := range map[float64]string{
		0:    "reproduced",
		0.05: "within tolerance 0.001 of cpu (largest deviation ",
		5:    "differs from cpu with a deviation of 0.0",
	} {
		l := remoteLab(t, 4)
		l.devices = "cpu:0"
		l.mustRun(remoteMaps)
		l.devices, l.force, l.compute, l.compare = "webgpu", []string{"maps"}, offBy(d), -1
		f := l.mustRun(remoteMaps).Forced
		if len(f) != 1 || !strings.HasPrefix(f[0].String(), want) || f[0].Reproduced != (d < 1) ||
			f[0].Within != (d > 0 && d < 1) {
			t.Errorf("off by %g: %v, want %s", d, f, want)
		}
	}
}

// TestForcedOnTheSameGPU: a GPU's bits may change from run to run, a processor's may not.
func TestForcedOnTheSameGPU(t *testing.T) {
	for d, want := range map[float64]string{
		0.05: "within tolerance 0.001 of webgpu (largest deviation ",
		5:    "differs from webgpu with a deviation of 0.0",
	} {
		l := remoteLab(t, 4)
		l.compare = -1
		l.mustRun(remoteMaps)
		l.force, l.compute = []string{"maps"}, offBy(d)
		if f := l.mustRun(remoteMaps).Forced; len(f) != 1 || !strings.HasPrefix(f[0].String(), want) ||
			f[0].Reproduced != (d < 1) {
			t.Errorf("off by %g: %v, want %s", d, f, want)
		}
	}
}

// TestFoldersOfAnotherClass holds that a review folder that the processor's run wrote is reproduced within
// the tolerances of its scores, or differs, and that neither rewrites it; and that the store's results of
// another class are taken, unless the same device is asked for.
func TestFoldersOfAnotherClass(t *testing.T) {
	const yaml = `
name: folder
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/remote, in: {images: images}}
  scores: {uses: lab/measured, in: {maps: maps}}
publish: [scores]
`
	ours := newLab(t)
	s := ours.measured()
	ours.stages[s.Name] = &s
	ours.number(4)
	dir := filepath.Join(ours.dir, "review")
	publishTo := func(l *lab) publish.Verdict {
		t.Helper()
		v, _, err := results.Publish(l.ctx, l.mustRun(yaml), dir, "", publish.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	read := func() (text string) {
		t.Helper()
		files, err := publish.Files(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(dir, f.Name))
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%s\n%s\n", f.Name, b)
		}
		return text
	}
	publishTo(ours)
	before := read()
	if !strings.Contains(before, `"made_by":"cpu"`) {
		t.Fatalf("published %s", before)
	}
	for d, want := range map[float64]string{0.004: "reproduced 1 score, 4 item scores",
		0.02: "differs: scores mean"} {
		l := remoteLab(t, 4)
		l.stages[s.Name] = &s
		l.compute = offBy(d)
		v := publishTo(l)
		if !strings.Contains(v.String(), want) || v.OK() != (d < 0.01) {
			t.Errorf("off by %g: %s", d, v)
		}
		verified, err := results.Verify(l.ctx, l.mustRun(yaml), dir)
		if err != nil || verified.OK() != v.OK() {
			t.Errorf("off by %g: verified %s, %v", d, verified, err)
		}
		if read() != before {
			t.Errorf("off by %g: the folder was written to", d)
		}
	}
	ours.devices, ours.compute = "webgpu", honest
	ours.mustRun(yaml)
	ours.want("any device", "on webgpu", 0)
	ours.same = true
	ours.mustRun(yaml)
	ours.want("the same device", "on webgpu", 4)
}

// TestClassesInTurns: what one class makes of what the other made isn't kept, and all slots of a device need
// it at once. None of them waits for a slot while it holds one.
func TestClassesInTurns(t *testing.T) {
	const yaml = `
name: turns
stages:
  images: {uses: lab/source}
  first:  {uses: lab/far, in: {images: images}, store: none}
  %ssecond: {uses: lab/far, in: {images: first}, with: {by: 3}, store: none}
  %sthird:  {uses: lab/remote, in: {images: second}, with: {by: 5}}
publish: []
`
	l := remoteLab(t, 24)
	l.chunk, l.compare = 1, -1
	far := *l.stages["lab/remote"] // whose maps are images for the next
	far.Name, far.Outputs = "lab/far", []stages.Port{{Name: "maps", Type: stages.Images}}
	l.stages[far.Name] = &far
	l.mustRun(fmt.Sprintf(yaml, "#", "#"))
	l.devices = "cpu:0"
	l.mustRun(fmt.Sprintf(yaml, "", "#"))
	l.devices = "webgpu"
	l.mustRun(fmt.Sprintf(yaml, "", ""))
	if l.ran["on cpu"] != 24 || l.ran["on webgpu"] != 48 {
		t.Errorf("executed %v", l.ran)
	}
}

// TestWhatAnotherClassMade: what isn't kept, or the store lost, of the processor's results is computed again
// by the processor.
func TestWhatAnotherClassMade(t *testing.T) {
	const yaml = `
name: again
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/remote, in: {images: images}, store: %s}
  scores: {uses: lab/add, in: {maps: maps}, with: {plus: %d}}
publish: []
`
	for _, keep := range []string{"none", "keep"} {
		l := remoteLab(t, 5)
		l.devices, l.compute = "cpu:0", offBy(0.1)
		l.mustRun(fmt.Sprintf(yaml, keep, 1))
		for _, path := range objects(t, l) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			os.Chmod(path, 0o644)
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		l.devices = "webgpu"
		res := l.mustRun(fmt.Sprintf(yaml, keep, 2))
		if got := l.text(res, "scores"); got != "i0=2 i1=4 i2=6 i3=8 i4=10 " {
			t.Errorf("%s: got %s", keep, got)
		}
		if l.ran["on webgpu"] != 0 || l.ran["on cpu"] < 5 {
			t.Errorf("%s: executed %v", keep, l.ran)
		}
		l.devices = "cpu:0"
		l.mustRun(fmt.Sprintf(yaml, keep, 2))
		l.want("afterwards", "on cpu", 0)
		l.devices, l.same = "webgpu", true
		l.mustRun(fmt.Sprintf(yaml, keep, 2))
		l.want("of the same device", "on webgpu", 5)
	}
}
