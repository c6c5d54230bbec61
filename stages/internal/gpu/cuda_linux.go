package gpu

/*
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	char name[256];
	size_t memory; // bytes
} cuda_adapter;

// cuda_list returns the number of adapters, or -1 if there is no driver, -2 if it doesn't start.
static int cuda_list(cuda_adapter *out, int most, int *version) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib) return -1;
	int (*init)(unsigned) = dlsym(lib, "cuInit");
	int (*driver)(int *) = dlsym(lib, "cuDriverGetVersion");
	int (*count)(int *) = dlsym(lib, "cuDeviceGetCount");
	int (*get)(int *, int) = dlsym(lib, "cuDeviceGet");
	int (*name)(char *, int, int) = dlsym(lib, "cuDeviceGetName");
	int (*memory)(size_t *, int) = dlsym(lib, "cuDeviceTotalMem_v2");
	if (!init || !driver || !count || !get || !name || !memory) return -1;
	int n = 0, failed = init(0);
	driver(version);
	if (failed == 100) return 0; // CUDA_ERROR_NO_DEVICE
	if (failed || count(&n)) return -2;
	if (n > most) n = most;
	for (int i = 0; i < n; i++) {
		int device;
		if (get(&device, i) || name(out[i].name, sizeof out[i].name, device) ||
			memory(&out[i].memory, device)) return -2;
	}
	return n;
}
*/
import "C"

import "fmt"

// CUDA returns the adapters that NVIDIA's driver shows this process, numbered as CUDA numbers them. An error
// is [Missing].
func CUDA() ([]Adapter, error) {
	found := make([]C.cuda_adapter, 64)
	var version C.int
	n := C.cuda_list(&found[0], C.int(len(found)), &version)
	switch {
	case n < 0:
		return nil, NoDriver
	case n == 0:
		return nil, NoAdapter
	}
	var list []Adapter
	for _, a := range found[:n] {
		list = append(list, Adapter{
			Name:   C.GoString(&a.name[0]),
			Driver: fmt.Sprintf("NVIDIA, up to CUDA %d.%d", version/1000, version%1000/10),
			Memory: int64(a.memory),
		})
	}
	return list, nil
}
