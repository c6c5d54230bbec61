// Vulkan's loader, but the device of a process is lost after $SUBMISSIONS submissions of work.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*proc_of)(void *, const char *);

static proc_of of_instance, of_device;
static int (*real_submit)(void *, uint32_t, const void *, void *);

static int submit(void *queue, uint32_t n, const void *work, void *fence) {
	static int left = -1;
	if (left < 0) left = atoi(getenv("SUBMISSIONS"));
	if (left == 0) return -4; // VK_ERROR_DEVICE_LOST
	left--;
	return real_submit(queue, n, work, fence);
}

static function device_proc(void *device, const char *name) {
	function f = of_device(device, name);
	if (strcmp(name, "vkQueueSubmit")) return f;
	real_submit = (void *)f;
	return (function)submit;
}

function vkGetInstanceProcAddr(void *instance, const char *name) {
	if (!of_instance) {
		void *lib = dlopen(getenv("VULKAN_LOADER"), RTLD_NOW | RTLD_LOCAL);
		of_instance = lib ? (proc_of)dlsym(lib, "vkGetInstanceProcAddr") : 0;
		if (!of_instance) return 0;
	}
	if (strcmp(name, "vkGetDeviceProcAddr")) return of_instance(instance, name);
	of_device = (proc_of)of_instance(instance, name);
	return (function)device_proc;
}
