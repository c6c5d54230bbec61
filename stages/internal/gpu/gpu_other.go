//go:build !linux

package gpu

// Vulkan and CUDA tell nothing where systems have other ways to their GPUs.
func Vulkan() ([]Adapter, error) { return nil, nil }

// CUDA is for Linux alone.
func CUDA() ([]Adapter, error) { return nil, NoDriver }

// LoadCUDA opens nothing.
func LoadCUDA(string, []string) []string { return nil }
