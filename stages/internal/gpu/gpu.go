// Package gpu asks the drivers of a machine's GPUs which adapters there are: [Vulkan] those that WebGPU
// computes on, [CUDA] those of NVIDIA. It opens the drivers' libraries when it asks, so that the program
// needs none to be built or to start. A driver may crash or print: call these functions in a process that may
// end.
package gpu

// An Adapter is a GPU, or a program that does what one does, as its driver describes it.
type Adapter struct {
	Name     string // "NVIDIA GeForce RTX 4090"
	Driver   string // name and version: "NVIDIA 570.86.16", "" if it doesn't tell
	Memory   int64  // bytes, of the largest heap that is the device's
	Software bool   // the processor computes
}

// A Missing says what keeps a machine from having an adapter.
type Missing int

const (
	NoLoader  Missing = iota + 1 // the library that hands calls on to the drivers
	NoDriver                     // a driver that works
	NoAdapter                    // an adapter; there is a driver
)

func (m Missing) Error() string {
	return [...]string{"", "there is no library to reach a driver by", "there is no driver",
		"the driver has no adapter"}[m]
}
