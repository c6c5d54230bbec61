package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

// madeBy returns the function that says what makes the results of a device
// class. It names only what can move the last bits of a number: the instructions
// that the kernels use, and the runtime.
func madeBy(s *store.Store, path string) func(class string) string {
	version := sync.OnceValue(func() string { return runtimeVersion(s, path) })
	return func(class string) string {
		if class == "cpu" {
			class += " " + instructions()
		}
		return class + ", " + version()
	}
}

const noRuntime = "no ONNX Runtime"

// runtimeVersion says which ONNX Runtime would be used. To open it costs more
// than a run that has nothing to do, so the store remembers what a library file
// said.
func runtimeVersion(s *store.Store, path string) string {
	file, err := registry.FindRuntime(path)
	if err != nil {
		return noRuntime
	}
	info, err := os.Stat(file)
	if err != nil {
		return noRuntime
	}
	key := stages.Sum(fmt.Appendf(nil, "runtime version\x00%s\x00%d\x00%d", file, info.Size(), info.ModTime().UnixNano()))
	if b, ok := s.Memo(key); ok {
		return string(b)
	}
	r, err := registry.OpenRuntime()
	if err != nil {
		return noRuntime
	}
	version := "ONNX Runtime " + r.Version
	// Without the memo the library is asked again next time.
	_ = s.SetMemo(key, []byte(version))
	return version
}

// instructions names the CPU's family as numeric kernels see it.
func instructions() string {
	switch {
	case cpu.X86.HasAVX512F:
		return "x86-64 AVX-512"
	case cpu.X86.HasAVX2:
		return "x86-64 AVX2"
	}
	return runtime.GOARCH
}
