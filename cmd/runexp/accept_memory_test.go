package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// flatYAML takes images all the way: maps, perturbed images, scores, a leaderboard.
// The net is tiny, so that ten thousand images don't take long.
const flatYAML = `name: flat
axes:
  method:
    random: {uses: attribute/random}
    constant: {uses: attribute/constant}
stages:
  images: {uses: dataset/shapes, with: {count: 1, size: 32}, store: none}
  model: {uses: model/onnx, with: {path: %s, preset: half, size: 32}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}, store: none}
  deletion: {uses: perturb/deletion, in: {model: model, images: images, maps: maps}, with: {steps: 1}}
  auc: {uses: score/auc, in: {curves: deletion}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  leaderboard:
    uses: report/leaderboard
    in: {scores: {metric: {auc: auc, mass: mass}}}
    over: all
    with: {rank: method}
publish: [leaderboard]
`

// peak returns the resident memory, in MiB, that a run over so many images needs in a fresh store.
func peak(t testing.TB, images int, args ...string) float64 {
	t.Helper()
	runtimeOrSkip(t)
	net, err := filepath.Abs("../../stages/internal/program/testdata/nets/softmax.onnx")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, map[string]string{"flat.yaml": fmt.Sprintf(flatYAML, net)})
	w.env = []string{
		// Each processor works on a chunk of images of its own, and a hundred images are
		// seven chunks: with more processors than that, or with as many on a busy
		// machine, a peak tells how much was done at once, not how many images there are.
		"GOMAXPROCS=2",
		// Garbage would pile up while a busy machine has no time for its collection. And
		// the profiler of allocations, which the test binary has and the command hasn't,
		// takes more memory the more was ever allocated.
		"GODEBUG=gcstoptheworld=1,memprofilerate=0",
	}
	args = append([]string{"run", "flat.yaml", "--quiet", "--set", fmt.Sprint("images.with.count=", images)},
		args...)
	e, mib := w.peak(args...)
	if e.code != 0 {
		t.Fatalf("exit code %d\n%s", e.code, e.stderr)
	}
	return mib
}

// Ten times the images need hardly more memory: they stream. So do those of a share. A run of a hundred
// images hasn't filled its buffers yet, so it tells less of this than one of a thousand.
func TestMemoryIsFlat(t *testing.T) {
	t.Run("run", func(t *testing.T) { memoryIsFlat(t) })
	t.Run("share", func(t *testing.T) { memoryIsFlat(t, "--share", "0/1") })
}

func memoryIsFlat(t *testing.T, args ...string) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		t.Skip("the environment sets how to collect garbage")
	}
	const more = 5.0 // MiB
	// Of three tries the middle one counts: a peak is a matter of when garbage is collected.
	middle := func(images int) float64 {
		tries := []float64{peak(t, images, args...), peak(t, images, args...), peak(t, images, args...)}
		slices.Sort(tries)
		return tries[1]
	}
	small, large := middle(1000), middle(10_000)
	t.Logf("1,000 images: %.1f MiB, 10,000 images: %.1f MiB", small, large)
	if large > small+more {
		t.Errorf("10,000 images need %.1f MiB, 1,000 need %.1f: more than %g MiB on top", large, small, more)
	}
}

// BenchmarkMemory reports the resident memory of runs over 100 to 100,000 images.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(peak(b, n), "MiB")
			}
		})
	}
}
