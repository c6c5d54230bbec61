// Package gpu asks the drivers of a machine's GPUs for their adapters: [Vulkan] for those on which WebGPU
// computes (vulkan_linux.go), [CUDA] for NVIDIA's (cuda_linux.go). It opens the drivers' libraries only
// then, so that the program can be built and started without them; load_linux.go opens the libraries of
// CUDA for a provider. A driver may crash or print: call these functions in a process that may end.
package gpu

// An Adapter is a GPU, or a program that imitates one, as its driver describes it.
type Adapter struct {
	Name     string // "NVIDIA GeForce RTX 4090"
	Driver   string // name and version: "NVIDIA 570.86.16", "" if unknown
	Memory   int64  // bytes, of the largest heap on the device
	Software bool   // the processor computes
}

// A Missing is the reason why a machine has no adapter.
type Missing int

const (
	NoLoader  Missing = iota + 1 // the library that passes calls on to the drivers
	NoDriver                     // a driver that works
	NoAdapter                    // an adapter; there is a driver
)

func (m Missing) Error() string {
	return [...]string{"", "there is no library to reach a driver by", "there is no driver",
		"the driver has no adapter"}[m]
}
