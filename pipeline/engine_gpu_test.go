package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// A GPU has two slots, so that the host prepares one chunk while another is computed. Its chunks and batches
// are larger than a processor's, and what programs find out about it is there in the next run, on the same
// kind of machine.
func TestGPUSlots(t *testing.T) {
	const yaml = `
name: gpu
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, in: {images: images}}
publish: [maps]
`
	l := newLab(t)
	l.number(128)
	l.devices, l.compare = "webgpu", -1
	scale := *l.stages["lab/scale"]
	l.stages["lab/scale"] = &scale
	inner, meet := scale.Run, make(chan bool)
	var batches, lens []int
	var recalled []string
	scale.Run = func(ctx context.Context, p any, e *stages.Env) error {
		select { // with the other slot
		case meet <- true:
		case <-meet:
		case <-time.After(10 * time.Second):
			return errors.New("no other chunk was computed meanwhile")
		}
		m := e.Slot.(stages.Remembering).Memory()
		found, _ := m.Recall("batch")
		m.Remember("batch", []byte("64"))
		l.mu.Lock()
		batches, lens = append(batches, e.Batch), append(lens, e.Len())
		recalled = append(recalled, string(found))
		l.mu.Unlock()
		return inner(ctx, p, e)
	}
	l.mustRun(yaml)
	if len(lens) != 2 || lens[0] != 64 || lens[1] != 64 || batches[0] != 256 {
		t.Errorf("chunks of %v items, batches up to %v; want two of 64, and 256", lens, batches)
	}
	again := func(machine, want string) {
		t.Helper()
		l.machine, l.force, recalled = machine, []string{"maps"}, nil
		l.mustRun(yaml)
		for _, found := range recalled {
			if found == want {
				return
			}
		}
		t.Errorf("machine %q recalled %q, want %q", machine, recalled, want)
	}
	again("", "64")
	again(" of another kind", "")
	l.batch, l.force = 32, []string{"maps"}
	scale.Run = func(ctx context.Context, p any, e *stages.Env) error {
		if e.Batch != 32 || e.Slot.(stages.Remembering).Memory() != nil {
			t.Errorf("asked for batches of 32, a stage has %d, and may choose others", e.Batch)
		}
		return inner(ctx, p, e)
	}
	l.mustRun(yaml)
}
