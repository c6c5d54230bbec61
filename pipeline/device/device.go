// Package device turns what a user says about devices into slots: places where
// one chunk of work at a time runs, each with the sessions that are loaded there.
package device

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Parse reads a list such as "cpu", "cpu:0,cpu:1" or "cuda:0,cuda:1". k numbered cpu
// slots share the cores, those that this process may use; "cpu" stands for one a core,
// since slots that compute apart never wait for one another, as the threads of one do
// behind every operator. "cuda" stands for every device that CUDA_VISIBLE_DEVICES lists,
// or the first one. Classes don't mix: one cell is made by one class.
func Parse(list string) ([]stages.Device, error) {
	var out []stages.Device
	cores := runtime.GOMAXPROCS(0)
	seen := map[stages.Device]bool{}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		class, number, numbered := strings.Cut(name, ":")
		if class != "cpu" && class != "cuda" {
			return nil, fmt.Errorf("unknown device %q: devices are cpu, cpu:0, cuda, cuda:0, …", name)
		}
		if len(out) > 0 && out[0].Class != class {
			return nil, fmt.Errorf("devices %q mix classes: one run uses either CPU or CUDA", list)
		}
		switch {
		case numbered:
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("device %q: %q is not a number", name, number)
			}
			out = append(out, stages.Device{Class: class, Index: n})
		case class == "cuda":
			for i := range visible() {
				out = append(out, stages.Device{Class: class, Index: i})
			}
		default:
			for i := range cores {
				out = append(out, stages.Device{Class: class, Index: i})
			}
		}
	}
	for _, d := range out {
		if seen[d] {
			return nil, fmt.Errorf("devices %q: %s is listed twice", list, d)
		}
		seen[d] = true
	}
	threads := max(1, cores/len(out))
	for i := range out {
		out[i].Threads = threads
	}
	return out, nil
}

// For returns the devices that work on so many items. An item is computed on one slot. Where
// a processor has four or more for each, most might idle: then it has one, with all threads.
func For(items int, devices []stages.Device) []stages.Device {
	if devices[0].Class != "cpu" || 4*items > len(devices) {
		return devices
	}
	one := devices[0]
	for _, d := range devices[1:] {
		one.Threads += d.Threads
	}
	return []stages.Device{one}
}

func visible() int {
	v := os.Getenv("CUDA_VISIBLE_DEVICES")
	if v == "" {
		return 1
	}
	return len(strings.Split(v, ","))
}
