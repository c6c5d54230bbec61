package main

import (
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/runexp/runexp/stages"
)

// TestInstructions tells makers of bfloat16 apart that compute other bits, and leaves those of float32 as
// they are.
func TestInstructions(t *testing.T) {
	before := cpu.X86
	t.Cleanup(func() { cpu.X86 = before })
	cpu.X86.HasAVX512F, cpu.X86.HasAVX512BF16 = true, true
	for _, tt := range []struct {
		amx             bool
		precision, want string
	}{
		{false, stages.Float32, "x86-64 AVX-512"},
		{true, stages.Float32, "x86-64 AVX-512"},
		{false, stages.BFloat16, "x86-64 AVX-512"},
		{true, stages.BFloat16, "x86-64 AMX"},
	} {
		cpu.X86.HasAMXBF16 = tt.amx
		if got := instructions(tt.precision); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
