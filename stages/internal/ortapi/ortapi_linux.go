package ortapi

/*
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// Positions in OrtApi, of ONNX Runtime 1.22 and newer.
enum { hardwareType = 307, hardwareVendor = 308, deviceOf = 316 };
enum { processor = 0, intel = 0x8086 };

typedef struct { void **(*api)(uint32_t version); } base;

// functions returns the interface of an open library, NULL if it isn't open or older than 1.22.
static void **functions(const char *library) {
	void *open = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	if (!open) return NULL;
	base *(*get)(void) = (base *(*)(void))dlsym(open, "OrtGetApiBase");
	void **f = get ? get()->api(22) : NULL;
	dlclose(open); // which leaves it open
	return f;
}

static int isProcessor(void **f, void *device) {
	void *hardware = ((void *(*)(void *))f[deviceOf])(device);
	return ((int (*)(void *))f[hardwareType])(hardware) == processor;
}

static int isIntels(void **f, void *device) {
	void *hardware = ((void *(*)(void *))f[deviceOf])(device);
	return isProcessor(f, device) && ((uint32_t (*)(void *))f[hardwareVendor])(hardware) == intel;
}

static void **patched;
static uint32_t (*vendor)(void *);

static uint32_t anyProcessorIsIntel(void *hardware) {
	int type = ((int (*)(void *))patched[hardwareType])(hardware);
	return type == processor ? intel : vendor(hardware);
}

// set sets a function of the interface, whose pages are read-only, if they can be changed.
static void set(void **at, void *function) {
	long page = sysconf(_SC_PAGESIZE);
	void *from = (void *)((uintptr_t)at & ~(uintptr_t)(page - 1));
	if (mprotect(from, page, PROT_READ | PROT_WRITE)) return;
	*at = function;
	mprotect(from, page, PROT_READ);
}

static void pretend(void **f) {
	patched = f;
	vendor = (uint32_t (*)(void *))f[hardwareVendor];
	set(&f[hardwareVendor], (void *)anyProcessorIsIntel);
}

static void stopPretending(void **f) { set(&f[hardwareVendor], (void *)vendor); }
*/
import "C"

import "unsafe"

func functions(library string) *unsafe.Pointer {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	return C.functions(path)
}

// IsProcessor reports whether a plugin's device, an OrtEpDevice, is a processor, given the path of the open
// library.
func IsProcessor(library string, device unsafe.Pointer) bool {
	f := functions(library)
	return f != nil && device != nil && C.isProcessor(f, device) != 0
}

// IsIntels reports whether a plugin's device is a processor of Intel.
func IsIntels(library string, device unsafe.Pointer) bool {
	f := functions(library)
	return f != nil && device != nil && C.isIntels(f, device) != 0
}

// AsIntel calls register, which registers a plugin, while the library says of every processor that it is
// Intel's. OpenVINO computes on those of other makers too, but its plugin offers only Intel's, which is to
// change (microsoft/onnxruntime#31981); a plugin can ask nothing but the library. Where the library's pages
// can't be changed, its answer stays true.
func AsIntel(library string, register func() error) error {
	f := functions(library)
	if f != nil {
		C.pretend(f)
		defer C.stopPretending(f)
	}
	return register()
}
