package gpu

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// What is used of Vulkan 1.1, by the layout that its specification gives it.

typedef void *(*proc_of)(void *instance, const char *name);

typedef struct {
	uint32_t type; const void *next; const char *app; uint32_t app_version;
	const char *engine; uint32_t engine_version, api;
} app_info;

typedef struct {
	uint32_t type; const void *next; uint32_t flags; const app_info *app;
	uint32_t layer_count; const char *const *layers;
	uint32_t extension_count; const char *const *extensions;
} instance_info;

typedef struct {
	uint32_t type; void *next; uint32_t id; char name[256], info[256]; uint8_t conformance[4];
} driver_properties;

typedef struct {
	uint32_t type; void *next; uint32_t api, driver, vendor, device, kind; char name[256];
	uint64_t rest[512]; // limits, of which nothing is read
} device_properties;

typedef struct {
	uint32_t type_count; uint32_t types[32][2];
	uint32_t heap_count; struct { uint64_t size; uint32_t flags; } heaps[16];
} memory_properties;

typedef struct {
	char name[256], driver[256], info[256];
	uint32_t kind;
	uint64_t memory;
} vk_adapter;

enum { most = 64, no_loader = 1, no_driver, no_adapter };

// vk_list returns the number of adapters, or the negative of what is missing.
static int vk_list(vk_adapter *out) {
	void *lib = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
	proc_of proc = lib ? (proc_of)dlsym(lib, "vkGetInstanceProcAddr") : 0;
	if (!proc) return -no_loader;
	int (*create)(const instance_info *, const void *, void **) = proc(0, "vkCreateInstance");
	app_info app = {.type = 0, .api = 1 << 22 | 1 << 12}; // 1.1
	instance_info info = {.type = 1, .app = &app};
	void *instance = 0;
	if (!create || create(&info, 0, &instance)) return -no_driver;
	int (*enumerate)(void *, uint32_t *, void **) = proc(instance, "vkEnumeratePhysicalDevices");
	void (*properties)(void *, device_properties *) = proc(instance, "vkGetPhysicalDeviceProperties2");
	void (*memory)(void *, memory_properties *) = proc(instance, "vkGetPhysicalDeviceMemoryProperties");
	void (*destroy)(void *, const void *) = proc(instance, "vkDestroyInstance");
	if (!enumerate || !properties || !memory || !destroy) return -no_driver;
	void *devices[most];
	uint32_t n = most;
	if (enumerate(instance, &n, devices) < 0) n = 0;
	for (uint32_t i = 0; i < n; i++) {
		driver_properties driver = {.type = 1000196000};
		device_properties device = {.type = 1000059001, .next = &driver};
		memory_properties m;
		memset(&m, 0, sizeof m);
		properties(devices[i], &device);
		memory(devices[i], &m);
		memcpy(out[i].name, device.name, sizeof device.name);
		memcpy(out[i].driver, driver.name, sizeof driver.name);
		memcpy(out[i].info, driver.info, sizeof driver.info);
		out[i].kind = device.kind;
		for (uint32_t h = 0; h < m.heap_count && h < 16; h++)
			if ((m.heaps[h].flags & 1) && m.heaps[h].size > out[i].memory) out[i].memory = m.heaps[h].size;
	}
	destroy(instance, 0);
	return n ? (int)n : -no_adapter;
}
*/
import "C"

import (
	"cmp"
	"slices"
)

// Vulkan returns the adapters of Vulkan's drivers, in the order in which Dawn, the library that implements
// WebGPU, prefers them for speed: it takes the first. An error is [Missing].
func Vulkan() ([]Adapter, error) {
	found := make([]C.vk_adapter, C.most)
	n := C.vk_list(&found[0])
	if n < 0 {
		return nil, Missing(-n)
	}
	found = found[:n]
	slices.SortStableFunc(found, func(a, b C.vk_adapter) int {
		return cmp.Compare(rank(a.kind), rank(b.kind))
	})
	var list []Adapter
	for _, a := range found {
		driver := C.GoString(&a.driver[0])
		if info := C.GoString(&a.info[0]); info != "" {
			driver += " " + info
		}
		list = append(list, Adapter{
			Name: C.GoString(&a.name[0]), Driver: driver, Memory: int64(a.memory), Software: a.kind == 4,
		})
	}
	return list, nil
}

// rank orders Vulkan's kinds of devices: discrete, integrated, the processor, others.
func rank(kind C.uint32_t) int {
	return slices.Index([]C.uint32_t{2, 1, 4, kind}, kind)
}
