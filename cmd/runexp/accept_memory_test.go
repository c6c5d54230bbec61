package main

import (
	"fmt"
	"os"
	"testing"
)

// flatYAML streams images through stages; only scores are kept.
const flatYAML = `name: flat
stages:
  images: {uses: dataset/shapes, with: {count: 1, size: 32}, store: none}
  maps: {uses: attribute/random, in: {images: images}, store: none}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  table: {uses: report/table, in: {values: mass}, over: all}
publish: [table]
`

// peak returns the resident memory, in MiB, that a run over so many images needs
// in a fresh store.
func peak(t testing.TB, images int) float64 {
	t.Helper()
	w := newWorld(t, map[string]string{"flat.yaml": flatYAML})
	// Else garbage piles up while a busy machine has no time for its collection.
	w.env = []string{"GODEBUG=gcstoptheworld=1"}
	_, mib := w.peak("run", "flat.yaml", "--quiet", "--set", fmt.Sprint("images.with.count=", images))
	return mib
}

// Ten times the images need hardly more memory: they stream.
func TestMemoryIsFlat(t *testing.T) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		t.Skip("the environment says how to collect garbage")
	}
	small, large := peak(t, 100), peak(t, 1000)
	// Of a second try the smaller counts: a peak is a matter of when garbage is collected.
	small, large = min(small, peak(t, 100)), min(large, peak(t, 1000))
	t.Logf("100 images: %.1f MiB, 1000 images: %.1f MiB", small, large)
	// A tenth of what the command needs for 100 images; the test binary is larger.
	const tenth = 1.9
	if large-small > tenth {
		t.Errorf("1000 images need %.1f MiB, 100 need %.1f: more than 10 %% on top", large, small)
	}
}

// BenchmarkMemory reports the resident memory of runs over 100 to 10,000 images.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(peak(b, n), "MiB")
			}
		})
	}
}
