//go:build !linux

package gpu

// Other systems have other interfaces to their GPUs.
func Vulkan() ([]Adapter, error) { return nil, nil }

// CUDA is supported only on Linux.
func CUDA() ([]Adapter, error) { return nil, NoDriver }

// LoadCUDA opens nothing.
func LoadCUDA(string, []string) []string { return nil }
