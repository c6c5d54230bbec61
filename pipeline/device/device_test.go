package device

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestParse(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,5")
	all := "cpu:0"
	for i := range runtime.GOMAXPROCS(0) - 1 {
		all += fmt.Sprintf(" cpu:%d", i+1)
	}
	for list, want := range map[string]string{
		"cpu": all, "cpu:0": "cpu:0", "cpu:0,cpu:1": "cpu:0 cpu:1", " cpu:1 , cpu:0": "cpu:1 cpu:0",
		"cuda": "cuda:0 cuda:1", "cuda:1": "cuda:1", "webgpu": "webgpu:0", "webgpu:2": "webgpu:2",
		"": "unknown device", "gpu": "unknown device", "cpu:x": "not a number", "cpu:-1": "not a number",
		"cpu,cuda": "mix classes", "cpu:1,cpu:1": "listed twice", "cpu,cpu:0": "listed twice",
		"cuda,cuda:1": "listed twice", "cpu:1,cpu:+1": "listed twice",
	} {
		devices, err := Parse(list)
		var got string
		for i, d := range devices {
			if got += d.String(); i < len(devices)-1 {
				got += " "
			}
			if d.Threads < 1 {
				t.Errorf("%q: %d threads", list, d.Threads)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: got %q, want %q", list, got, want)
		}
	}
}

// TestFor holds that a processor with four slots or more for each item has one instead, of all threads, and
// that other devices stay as they are.
func TestFor(t *testing.T) {
	cpus := func(n, threads int) (list []stages.Device) {
		for i := range n {
			list = append(list, stages.Device{Class: "cpu", Index: i, Threads: threads})
		}
		return list
	}
	cuda := []stages.Device{{Class: "cuda"}, {Class: "cuda", Index: 1}}
	for _, tc := range []struct {
		items         int
		devices, want []stages.Device
	}{
		{1, cpus(2, 1), cpus(2, 1)},
		{1, cpus(4, 1), cpus(1, 4)},
		{2, cpus(8, 2), cpus(1, 16)},
		{3, cpus(8, 1), cpus(8, 1)},
		{1000, cpus(2, 1), cpus(2, 1)},
		{1, cuda, []stages.Device{cuda[0], cuda[1], cuda[0], cuda[1]}},
	} {
		got := For(tc.items, tc.devices)
		if len(got) > Slots(tc.devices) {
			t.Errorf("%d slots of %v, of at most %d", len(got), tc.devices, Slots(tc.devices))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%d items on %v: %v, want %v", tc.items, tc.devices, got, tc.want)
		}
	}
}
