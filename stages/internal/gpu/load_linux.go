package gpu

/*
#include <dlfcn.h>
#include <stdlib.h>

static int load(const char *path) { return dlopen(path, RTLD_LAZY | RTLD_GLOBAL) != 0; }
*/
import "C"

import (
	"debug/elf"
	"path/filepath"
	"strings"
	"unsafe"
)

// LoadCUDA opens the libraries of CUDA that a provider's library needs, and cuDNN, if the system's loader
// doesn't find them and one of the folders has them, such as those of NVIDIA's Python packages. A library
// that isn't found is left to the provider's error. It returns the files that it opened.
func LoadCUDA(provider string, folders []string) (opened []string) {
	f, err := elf.Open(provider)
	if err != nil {
		return nil
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil
	}
	names := []string{"libcudnn.so.9"}
	for _, n := range needed {
		if release, ok := strings.CutPrefix(n, "libcudart.so."); ok { // cuDNN compiles by nvrtc
			names = append([]string{n, "libnvJitLink.so." + release, "libnvrtc.so." + release}, names...)
			continue
		}
		names = append([]string{n}, names...)
	}
	// Their dependencies aren't known here, so they are tried until no more opens.
	done := map[string]bool{}
	for more := true; more; {
		more = false
		for _, n := range names {
			if done[n] || load(n) {
				continue
			}
			for _, dir := range folders {
				if file := filepath.Join(dir, n); load(file) {
					opened, more, done[n] = append(opened, file), true, true
					break
				}
			}
		}
	}
	return opened
}

// load opens a library, by its name if the system's loader finds it or by its path, and reports whether it
// could.
func load(path string) bool {
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	return C.load(c) != 0
}
