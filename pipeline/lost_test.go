package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// dying returns a device that is lost at the item after so many, of its own, and how many it was asked for.
// Others wait for that, so that they don't do all the work before.
type dying struct {
	mu    sync.Mutex
	after map[int]int // by index
	seen  map[int]int
	dead  chan struct{}
	left  int // that are to die
}

func newDying(after map[int]int) *dying {
	return &dying{after: after, seen: map[int]int{}, dead: make(chan struct{}), left: len(after)}
}

func (d *dying) compute(on stages.Device, id string, x float64) ([]byte, error) {
	d.mu.Lock()
	d.seen[on.Index]++
	after, dies := d.after[on.Index]
	over := dies && d.seen[on.Index] > after
	if over && d.seen[on.Index] == after+1 {
		if d.left--; d.left == 0 {
			close(d.dead)
		}
	}
	d.mu.Unlock()
	if over {
		return nil, fmt.Errorf("lost: %w", stages.ErrDeviceLost)
	}
	if !dies {
		<-d.dead
	}
	return big(x), nil
}

// TestLostDevices holds that a device that is lost costs its chunk, which another takes, with one warning;
// that results are those of one device; and that with none left the run ends with one sentence, and a later
// one goes on.
func TestLostDevices(t *testing.T) {
	const flowing = `
name: lost
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/remote, in: {images: images}, store: none}
  twice:  {uses: lab/scale, in: {images: images}, store: none}
  both:   {uses: lab/mix, in: {maps: maps, more: twice}}
  scores: {uses: lab/add, in: {maps: both}}
publish: []
`
	const whole = `
name: lost
stages:
  images: {uses: lab/source}
  both:   {uses: lab/remoteall, in: {images: images}}
  other:  {uses: lab/remoteall, in: {images: images}, with: {by: 3}}
publish: []
`
	text := func(l *lab, yaml string) string { return l.text(l.mustRun(yaml), "both") }
	for name, tc := range map[string]struct {
		yaml  string
		after map[int]int
		none  bool // is left
	}{
		"at its first chunk":      {flowing, map[int]int{0: 0}, false},
		"in the middle":           {flowing, map[int]int{1: 7}, false},
		"two of three":            {flowing, map[int]int{0: 5, 2: 0}, false},
		"all":                     {flowing, map[int]int{0: 9, 1: 0, 2: 5}, true},
		"that has all items":      {whole, map[int]int{0: 3}, false},
		"all that have all items": {whole, map[int]int{0: 3, 1: 2, 2: 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			one := remoteLab(t, 40)
			want := text(one, tc.yaml)
			l := remoteLab(t, 40)
			l.chunk, l.devices, l.compare = 4, "webgpu:0,webgpu:1,webgpu:2", -1
			d := newDying(tc.after)
			l.compute = d.compute
			res, err := l.run(tc.yaml)
			lost := 0
			for _, s := range l.said(pipeline.Warning) {
				if strings.Contains(s, "is lost, and what it was computing goes to another device") {
					lost++
				}
			}
			if !tc.none {
				if err != nil {
					t.Fatal(err)
				}
				l.t.Cleanup(res.Close)
				if got := l.text(res, "both"); got != want || lost != len(tc.after) {
					t.Errorf("%d warnings; got %q, want %q", lost, got, want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "no device is left: webgpu:") || lost != 2 {
				t.Fatalf("%d warnings, error %v", lost, err)
			}
			if state, why := ended(t, res, "both"); state == schedule.Failed || state == schedule.Blocked {
				t.Errorf("fate %d, %s", state, why)
			}
			res.Close()
			done := l.ran["mix"]
			l.compute = honest
			if got := text(l, tc.yaml); got != want {
				t.Errorf("later: got %q, want %q", got, want)
			}
			if tc.yaml == flowing && (l.ran["mix"] != 40-done || done == 0) {
				t.Errorf("%d items before, %d later", done, l.ran["mix"])
			}
		})
	}
}

// TestLostSlots holds that a device goes with all its slots at once: what its other slot computes may fail as
// it likes and is computed on another device, nothing more is tried on it, and a single one that is lost
// tells of no other.
func TestLostSlots(t *testing.T) {
	for devices, left := range map[string]bool{"webgpu:0,webgpu:1": true, "webgpu": false} {
		l := remoteLab(t, 40)
		l.chunk, l.devices, l.compare = 2, devices, -1
		var mu sync.Mutex
		calls, both := 0, make(chan bool)
		l.compute = func(on stages.Device, _ string, x float64) ([]byte, error) {
			if on.Index == 1 {
				<-both
				return big(x), nil
			}
			mu.Lock()
			calls++
			call := calls
			mu.Unlock()
			switch call {
			case 1: // until the other slot computes, too
				<-both
				return nil, fmt.Errorf("lost: %w", stages.ErrDeviceLost)
			case 2:
				close(both)
				time.Sleep(100 * time.Millisecond)
				return nil, errors.New("a buffer can't be mapped")
			}
			return big(x), nil
		}
		res, err := l.run(remoteMaps)
		warnings := l.said(pipeline.Warning)
		if calls != 2 {
			t.Errorf("%s: %d items were tried on the lost device", devices, calls)
		}
		if left && (err != nil || len(warnings) != 1) ||
			!left && (err == nil || !strings.Contains(err.Error(), "no device is left: webgpu:0") ||
				len(warnings) != 0) {
			t.Errorf("%s: error %v, warnings %q", devices, err, warnings)
		}
		state, why := ended(t, res, "maps")
		if left && state != schedule.Done || state == schedule.Failed {
			t.Errorf("%s: fate %d, %s", devices, state, why)
		}
		res.Close()
	}
}

// TestLostWhileRestoring: a device may be lost while it computes again what the store lost.
func TestLostWhileRestoring(t *testing.T) {
	l := remoteLab(t, 12)
	l.chunk, l.devices, l.compare = 4, "webgpu:0,webgpu:1,webgpu:2", -1
	damage := func() { // which only reading finds
		t.Helper()
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
	}
	want := l.text(l.mustRun(remoteMaps), "maps")
	damage()
	var mu sync.Mutex
	calls, deaths := 0, 2
	l.compute = func(_ stages.Device, _ string, x float64) ([]byte, error) { // each dies at its third item
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls%3 == 0 && deaths > 0 {
			deaths--
			return nil, stages.ErrDeviceLost
		}
		return big(x), nil
	}
	plus := func(by int) string {
		scores := fmt.Sprintf("  scores: {uses: lab/add, in: {maps: maps}, with: {plus: %d}}\npublish", by)
		return strings.Replace(remoteMaps, "publish", scores, 1)
	}
	res := l.mustRun(plus(0))
	if got := l.text(res, "maps"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if res.Summary.Restored == 0 || len(l.said(pipeline.Warning)) < 2 {
		t.Errorf("%d cells restored, said %q", res.Summary.Restored, l.said(pipeline.Warning))
	}
	damage()
	calls, deaths = 0, 3
	res, err := l.run(plus(1))
	if res != nil {
		res.Close()
	}
	if err == nil || errors.Is(err, pipeline.ErrDrained) ||
		!strings.Contains(err.Error(), "no device is left") {
		t.Errorf("error %v", err)
	}
}
