// Package device turns a list of devices into slots: places where one chunk of work at a time runs, each with
// the sessions that are loaded there. device.go parses the list and chooses the devices for a number of
// items; cache.go has the slots, and the cache of sessions that those of one device share.
package device

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Parse reads a list such as "cpu", "cpu:0,cpu:1" or "cuda:0,cuda:1". k numbered cpu slots share the cores
// that this process may use. "cpu" stands for one slot a core: slots compute apart and never wait for one
// another, while the threads of one slot wait behind every operator. "cuda" stands for every device that
// CUDA_VISIBLE_DEVICES lists, or the first one, "webgpu" for the first one. Classes don't mix, since one
// class makes all of a cell.
func Parse(list string) ([]stages.Device, error) {
	var out []stages.Device
	cores := runtime.GOMAXPROCS(0)
	seen := map[stages.Device]bool{}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		class, number, numbered := strings.Cut(name, ":")
		if !slices.Contains(stages.DeviceClasses, class) {
			return nil, fmt.Errorf("unknown device %q: devices are cpu, cpu:0, cuda, cuda:0, webgpu, …", name)
		}
		if len(out) > 0 && out[0].Class != class {
			return nil, fmt.Errorf("devices %q mix classes: one run uses one class", list)
		}
		first, count := 0, cores
		if numbered {
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("device %q: %q is not a number", name, number)
			}
			first, count = n, 1
		} else if class != "cpu" {
			count = 1
			if class == "cuda" {
				count = strings.Count(os.Getenv("CUDA_VISIBLE_DEVICES"), ",") + 1 // one unless it's set
			}
		}
		for i := range count {
			out = append(out, stages.Device{Class: class, Index: first + i})
		}
	}
	threads := max(1, cores/len(out))
	for i, d := range out {
		if seen[d] {
			return nil, fmt.Errorf("devices %q: %s is listed twice", list, d)
		}
		seen[d] = true
		out[i].Threads = threads
	}
	return out, nil
}

// lanes is how many slots a device other than a processor has: while the run of one has it, another decodes,
// fills buffers, or encodes and stores.
const lanes = 2

// Slots returns how many slots devices have at most.
func Slots(devices []stages.Device) int {
	if devices[0].Class == "cpu" {
		return len(devices)
	}
	return lanes * len(devices)
}

// For returns the devices of the slots that compute so many items. An item is computed on one slot, so with
// four or more processor slots an item most of them might idle: then one slot has all their threads.
func For(items int, devices []stages.Device) []stages.Device {
	if devices[0].Class != "cpu" {
		return slices.Repeat(devices, lanes) // the first of each before the second of any
	}
	if 4*items > len(devices) {
		return devices
	}
	one := devices[0]
	for _, d := range devices[1:] {
		one.Threads += d.Threads
	}
	return []stages.Device{one}
}
