// Package device turns a list of devices into slots: places where one chunk of work at a time runs, each with
// the sessions that are loaded there. device.go parses the list and chooses the devices for a number of
// items; cache.go has the slots, and the cache of sessions that the slots of one device share.
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
// that this process may use. "cpu" stands for one slot a core: separate slots never wait for each other,
// while the threads of one slot do so after every operator. "cuda" stands for every device in
// CUDA_VISIBLE_DEVICES, or the first one, "webgpu" for the first one. Classes can't be mixed, since a cell
// is computed by a single class.
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
				// 1 unless the variable is set
				count = strings.Count(os.Getenv("CUDA_VISIBLE_DEVICES"), ",") + 1
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

// lanes is the number of slots of a device other than a processor: while one slot's run uses the device,
// the other decodes, fills buffers, encodes or stores.
const lanes = 2

// Slots returns the largest number of slots that devices have.
func Slots(devices []stages.Device) int {
	if devices[0].Class == "cpu" {
		return len(devices)
	}
	return lanes * len(devices)
}

// For returns the devices of the slots that compute this many items. An item is computed on one slot, so
// with four or more processor slots an item most slots would idle; then one slot gets all threads.
func For(items int, devices []stages.Device) []stages.Device {
	if devices[0].Class != "cpu" {
		return slices.Repeat(devices, lanes) // the first slot of each device before the second of any
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
