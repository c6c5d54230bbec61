package pipeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/pipeline"
)

// Warnings of one reason are reported once a cell, with a count, whatever the order of its chunks.
func TestWarningsComeOnceACellAndReason(t *testing.T) {
	const yaml = `
name: wary
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, in: {images: images}}
  mixed:  {uses: lab/mix, in: {maps: maps}, with: {fail: warn}}
publish: []
`
	for _, devices := range []string{"cpu:0", "cpu:0,cpu:1"} {
		l := newLab(t)
		l.devices, l.chunk = devices, 2
		l.items = []string{"d=7", "b=3", "a=1", "c=5"}
		l.mustRun(yaml)
		want := []string{`mixed: 4 items, such as "a": 2 is odd`, "mixed: a pile of 2 (4 such warnings)"}
		if d := cmp.Diff(want, l.said(pipeline.Warning)); d != "" {
			t.Errorf("%s: %s", devices, d)
		}
		l.items = []string{"d=7", "b=3", "a=1", "c=5", "e=9"}
		l.mustRun(yaml)
		want = []string{`mixed: item "e": 18 is odd`, "mixed: a pile of 1"}
		if d := cmp.Diff(want, l.said(pipeline.Warning)); d != "" {
			t.Errorf("%s, with an item more: %s", devices, d)
		}
	}
}
