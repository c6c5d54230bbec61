package main

import (
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

// compiler returns the function that identifies the compiler of programs: this build of the command, and
// the ONNX Runtime that simplifies models for it. Without an ONNX Runtime it names the last one that this
// build used: nothing can be computed then, but earlier results stay known.
func compiler(s *store.Store, runtime string) func() string {
	return sync.OnceValue(func() string {
		build, version := buildID(), runtimeVersion(s, runtime)
		last := stages.Sum([]byte("last runtime of build " + build))
		if version != noRuntime {
			_ = s.SetMemo(last, []byte(version))
		} else if b, ok := s.Memo(last); ok {
			version = string(b)
		}
		return "build " + build + ", " + version
	})
}

// buildID distinguishes builds of the command by the ID that Go's linker has written, or by the digest of
// the file if there is no such ID. If the file can't be read either, every command counts as another build.
func buildID() string {
	path, _ := os.Executable() // "" can't be opened
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		if id := elfBuildID(f); id != "" {
			return id
		}
		h := sha256.New()
		if _, err = io.Copy(h, f); err == nil {
			return fmt.Sprintf("%x", h.Sum(nil))
		}
	}
	return fmt.Sprint("at ", time.Now().UnixNano())
}

// elfBuildID reads the note that holds the ID in an ELF file: otherwise every command would hash tens of
// megabytes.
func elfBuildID(f io.ReaderAt) string {
	file, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	note := file.Section(".note.go.buildid")
	if note == nil {
		return ""
	}
	b, err := note.Data()
	if err != nil || len(b) < 16 { // sizes of name and text, a type, the name
		return ""
	}
	text := b[16:]
	return string(text[:min(len(text), int(file.ByteOrder.Uint32(b[4:])))])
}

// madeBy returns the function that identifies the maker of a device class's results. It names only things
// that can change the last bits of a number and aren't in keys: the instructions that kernels use, the
// version of the class's programs, the runtime and its plugin. The model of the card isn't among them:
// results of any card are within the tolerances.
func madeBy(s *store.Store, path string) func(class string) string {
	version := sync.OnceValue(func() string { return runtimeVersion(s, path) })
	plugin := sync.OnceValue(func() string { return pluginVersion(s, path) })
	openVINO := sync.OnceValue(func() string { return openVINOVersion(s, path) })
	return func(class string) string {
		made := class
		class, precision, _ := strings.Cut(class, " ")
		if precision == stages.BFloat16 {
			made += openVINO()
		}
		if forms := ort.ProviderOf(class).KernelsIn(precision).Forms; forms > 0 {
			made += fmt.Sprintf(" forms %d", forms)
		}
		switch class {
		case "cpu":
			made += " " + instructions(precision)
		case "webgpu":
			made += plugin()
		}
		return made + ", " + version()
	}
}

const noRuntime = "no ONNX Runtime"

// runtimeVersion names the ONNX Runtime that would be used. Opening it takes longer than a whole run with
// nothing to do, so the store remembers the version of a library file.
func runtimeVersion(s *store.Store, path string) string {
	library, _ := ort.Find(path) // "" doesn't exist
	version := foundOut(s, "runtime version", func() string {
		if r, err := ort.Default(); err == nil {
			return "ONNX Runtime " + r.Version
		}
		return ""
	}, library.Path)
	return cmp.Or(version, noRuntime)
}

// pluginVersion identifies WebGPU's plugin by its bytes, since it has no version; it is "" if the library
// needs no plugin.
func pluginVersion(s *store.Store, path string) string {
	library, _ := ort.Find(path)
	file := ort.Plugin(library.Path)
	return foundOut(s, "plugin", func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return " plugin " + stages.Sum(b).Short()
	}, file)
}

// openVINOVersion identifies OpenVINO's plugin in the same way.
func openVINOVersion(s *store.Store, path string) string {
	library, _ := ort.Find(path)
	file := ort.OpenVINO(library.Path)
	return foundOut(s, "OpenVINO", func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return " OpenVINO " + stages.Sum(b).Short()
	}, file)
}

// foundOut returns the result of find for a file, which the store remembers as long as the file stays the
// same. It is "" if there is no file.
func foundOut(s *store.Store, what string, find func() string, file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	const state = "%s\x00%s\x00%d\x00%d"
	key := stages.Sum(fmt.Appendf(nil, state, what, file, info.Size(), info.ModTime().UnixNano()))
	if b, ok := s.Memo(key); ok {
		return string(b)
	}
	found := find()
	if found != "" {
		_ = s.SetMemo(key, []byte(found)) // if it fails, the file is read again next time
	}
	return found
}

// instructions names the CPU's family by the instructions that numeric kernels use in a precision. OpenVINO's
// kernels of AMX add in another order than those of AVX-512.
func instructions(precision string) string {
	switch {
	case precision == stages.BFloat16 && cpu.X86.HasAMXBF16:
		return "x86-64 AMX"
	case cpu.X86.HasAVX512F:
		return "x86-64 AVX-512"
	case cpu.X86.HasAVX2:
		return "x86-64 AVX2"
	}
	return runtime.GOARCH
}
