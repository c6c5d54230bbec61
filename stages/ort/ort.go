// Package ort runs ONNX models. It alone imports onnxruntime_go, and hides the delicate parts: finding the
// library, the single environment of a process, memory that the library owns, cancelling a run.
//
// ort.go finds and opens the library, also in Python's packages (wheel.go). session.go loads a model and
// runs it, on the values of tensor.go; binding.go keeps tensors on a device between runs; simplify.go has
// the library optimise a model and infer shapes; profile.go has it measure a session.
//
// provider.go and provider_*.go describe the classes of devices and their precisions, plugin.go finds and
// registers the libraries that have some of them, and probe.go tries whether they compute.
//
// account.go admits runs that fit the memory, which room.go measures. A model that may crash, hang or
// exhaust memory runs in a worker process: worker.go is the caller's side, serve.go the process's,
// message.go the protocol between them, and limits_*.go bound what it takes. inuse.go and inuse_*.go
// remember which models were in use when a process crashed.
//
// signals_*.go, handlers.go, streams_*.go and scratch_*.go protect this process from what libraries do to
// its signals, its stderr and its temporary folder.
//
// ONNX Runtime allows one environment per process, so this package has global state, as no other here has.
// [Use] sets the library's path, and the first call of [Default] opens it; nothing happens before.
package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// Version is the oldest release of ONNX Runtime with the interface that the binding needs; newer ones have
// it too. It is the last release with a package for CUDA 12.
const Version = "1.26.0"

// A Runtime is the opened library.
type Runtime struct {
	Library Library
	// Version is the library's own version.
	Version string

	worker   *worker // the process that uses the library; nil: this one
	reusable bool    // Isolated may use the worker again
	needs    Needs   // of the programs that it loads
	profiled bool    // its sessions record profiles
	alone    bool    // its sessions fail if their device can't compute all
}

var process struct {
	mu      sync.Mutex // guards the fields below
	path    string     // the argument of Use
	workers []string   // the argument of UseWorkers
	idle    []*worker  // workers that wait for a call of Isolated
	inUse   *inUse     // set by Watch
	account *account
	turns   map[string]*turns // by device, such as webgpu:0, whatever a program is loaded with
	runtime *Runtime
}

// Use sets the path of the library, a file or the folder that contains it, as --onnxruntime does. It has no
// effect once the library is open.
func Use(path string) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.path = path
}

// Default returns the process's runtime, which the first call opens. Its error says where the library was
// looked for, or which version was found and which is needed. After an error it may be called again.
func Default() (*Runtime, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.runtime != nil {
		return process.runtime, nil
	}
	lib, err := Find(process.path)
	if err != nil {
		return nil, err
	}
	r, err := open(lib)
	if err != nil {
		return nil, err
	}
	process.runtime = r
	return r, nil
}

// ErrNoRuntime is the error of a library that is missing or unsuitable, which the user can correct.
type ErrNoRuntime struct{ Reason string }

func (e *ErrNoRuntime) Error() string { return e.Reason }

// NoRuntime reports whether err is caused by an [ErrNoRuntime].
func NoRuntime(err error) bool {
	_, missing := errors.AsType[*ErrNoRuntime](err)
	return missing
}

func open(lib Library) (*Runtime, error) {
	onnxruntime.SetSharedLibraryPath(lib.Path)
	if err := onnxruntime.InitializeEnvironment(onnxruntime.WithLogLevelFatal()); err != nil {
		if v := versionIn(lib.Path); v != "" && older(v, Version) {
			return nil, &ErrNoRuntime{fmt.Sprintf("%s (%s) is ONNX Runtime %s: version %s or newer is needed",
				lib.Path, lib.How, v, Version)}
		}
		return nil, &ErrNoRuntime{fmt.Sprintf("%s (%s) is not an ONNX Runtime %s or newer: %v", lib.Path,
			lib.How, Version, err)}
	}
	if err := shareArena(); err != nil {
		return nil, errors.Join(err, onnxruntime.DestroyEnvironment())
	}
	return &Runtime{Library: lib, Version: onnxruntime.GetVersion()}, nil
}

// shareArena makes one arena for the activations of all sessions, which would otherwise have one each.
func shareArena() error {
	info, err := onnxruntime.GetMemoryInfo()
	if err != nil {
		return err
	}
	cfg, err := onnxruntime.NewArenaCfg(0, -1, -1, -1)
	if err != nil {
		return err
	}
	defer cfg.Destroy()
	return onnxruntime.CreateAndRegisterAllocator(info, cfg)
}

var versionMark = regexp.MustCompile(`VERS_(\d+\.\d+\.\d+)`)
var versionName = regexp.MustCompile(`\d+\.\d+\.\d+`)

// maxLibrary bounds the size of a file that is searched for a version.
const maxLibrary = 1 << 31

// versionIn returns the version of a library that isn't loaded, from its symbols or from its name, or "".
func versionIn(path string) string {
	if b, err := stages.ReadFile(path, maxLibrary); err == nil {
		if m := versionMark.FindSubmatch(b); m != nil {
			return string(m[1])
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return versionName.FindString(filepath.Base(path))
}

// older compares two versions such as 1.24.1.
func older(a, b string) bool {
	var x, y [3]int
	fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

// A Library is a file that should be ONNX Runtime.
type Library struct {
	Path string
	How  string // how it was found: "$ONNXRUNTIME_LIB", "the user's cache folder"
}

// Find looks for the library: at the path given, at $ONNXRUNTIME_LIB, in lib next to the program, in the
// Python packages of the program's environment, in the user's cache folder, and in the system's folders. If
// one of the first two is given, no other place is searched.
func Find(path string) (Library, error) {
	if path != "" {
		return at(path, "--onnxruntime")
	}
	if path := os.Getenv("ONNXRUNTIME_LIB"); path != "" {
		return at(path, "$ONNXRUNTIME_LIB")
	}
	var tried []string
	look := func(places []Library) (Library, bool) {
		for _, p := range places {
			if file := inFolder(p.Path); file != "" {
				return Library{file, p.How}, true
			}
			tried = append(tried, p.Path)
		}
		return Library{}, false
	}
	if lib, ok := look(ownPlaces()); ok {
		return lib, nil
	}
	file, environments := inWheels()
	if file != "" {
		return Library{file, "Python's package onnxruntime"}, nil
	}
	for _, e := range environments {
		tried = append(tried, "Python's packages in "+e)
	}
	if lib, ok := look(commonPlaces()); ok {
		return lib, nil
	}
	return Library{}, &ErrNoRuntime{fmt.Sprintf("no ONNX Runtime found: install Python's package "+
		"onnxruntime next to runexp, give --onnxruntime, or set ONNXRUNTIME_LIB to the path of %s, version "+
		"%s or newer (looked in %s)",
		fileName(), Version, strings.Join(tried, ", "))}
}

func at(path, how string) (Library, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Library{}, &ErrNoRuntime{fmt.Sprintf("%s names no ONNX Runtime: %v", how, err)}
	}
	if info.IsDir() {
		file := inFolder(path)
		if file == "" {
			return Library{}, &ErrNoRuntime{fmt.Sprintf("%s names the folder %s, which has no %s", how, path,
				fileName())}
		}
		path = file
	} else if !info.Mode().IsRegular() {
		return Library{}, &ErrNoRuntime{fmt.Sprintf("%s names no ONNX Runtime: %s is %v", how, path,
			stages.ErrNotRegular)}
	}
	// A bare name would be looked up by the system's loader instead.
	abs, err := filepath.Abs(path)
	return Library{abs, how}, err
}

// ownPlaces returns the folders that come with the program.
func ownPlaces() (out []Library) {
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dir := filepath.Dir(exe)
		out = append(out, Library{filepath.Join(dir, "lib"), "lib next to the program"},
			Library{filepath.Join(filepath.Dir(dir), "lib"), "lib next to the program's folder"})
	}
	return out
}

// commonPlaces returns the folders that all programs of the user, or of the system, share.
func commonPlaces() (out []Library) {
	if dir, err := os.UserCacheDir(); err == nil {
		out = append(out, Library{filepath.Join(dir, "runexp", "lib"), "the user's cache folder"})
	}
	system := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	switch runtime.GOOS {
	case "linux":
		arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		system = append(system, "/usr/local/lib", "/usr/lib/"+arch+"-linux-gnu", "/usr/lib64", "/usr/lib")
	case "darwin":
		system = append(system, "/opt/homebrew/lib", "/usr/local/lib")
	}
	for _, dir := range system {
		if dir != "" {
			out = append(out, Library{dir, "the system"})
		}
	}
	return out
}

func fileName() string {
	switch runtime.GOOS {
	case "darwin":
		return "libonnxruntime.dylib"
	case "windows":
		return "onnxruntime.dll"
	}
	return "libonnxruntime.so"
}

// inFolder returns the library in a folder: the one without a version in its name, or else the newest, or
// "".
func inFolder(dir string) string {
	plain := filepath.Join(dir, fileName())
	if info, err := os.Stat(plain); err == nil && info.Mode().IsRegular() {
		return plain
	}
	return newest(dir)
}

// newest returns the library of a folder with the highest version in its name, or "".
func newest(dir string) (best string) {
	found, _ := filepath.Glob(filepath.Join(dir, "libonnxruntime*")) // the pattern is well-formed
	for _, f := range found {
		if versionedName.MatchString(filepath.Base(f)) && (best == "" || older(numbers(best), numbers(f))) {
			best = f
		}
	}
	return best
}

// numbers returns the version in a file's name.
func numbers(path string) string { return versionName.FindString(filepath.Base(path)) }
