// A stand-in for a driver of Vulkan: STATE has it be
// without adapter, crash or warn, or else have an adapter without any feature.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *state) { return !strcmp(getenv("STATE"), state); }

// Vulkan's loader writes into the first word of what drivers hand out.
static uint64_t instance[2] = {0x01CDC0DE}, device[2] = {0x01CDC0DE};

static int nothing(void) { return 0; }
static int none(void *a, uint32_t *n) { return *n = 0; }
static int none_of_layer(void *a, const char *layer, uint32_t *n) { return *n = 0; }
static int none_of_all(const char *layer, uint32_t *n) { return *n = 0; }

static int create(const void *info, const void *allocator, void **out) {
	*out = instance;
	return 0;
}

static int enumerate(void *i, uint32_t *n, void **out) {
	if (is("crash")) *(volatile int *)8 = 1;
	if (is("loud")) fputs("WARNING: stand-in is not a conformant driver\n", stderr);
	if (is("empty") || is("loud")) return *n = 0;
	if (out) out[0] = device;
	*n = 1;
	return 0;
}

static void properties(void *d, char *p) {
	uint32_t head[5] = {1 << 22 | 1 << 12, 1, 2, 3, 2};
	memcpy(p, head, sizeof head);
	strcpy(p + 20, "Stand-in");
}

static void properties2(void *d, char *p) {
	properties(d, p + 16);
	for (char *next = *(char **)(p + 8); next; next = *(char **)(next + 8))
		if (*(uint32_t *)next == 1000196000) {
			strcpy(next + 20, "Stand-in");
			strcpy(next + 276, "1.2.3");
		}
}

void *vk_icdGetInstanceProcAddr(void *i, const char *name) {
	if (!strcmp(name, "vkCreateInstance")) return create;
	if (!strcmp(name, "vkEnumeratePhysicalDevices")) return enumerate;
	if (!strcmp(name, "vkGetPhysicalDeviceProperties")) return properties;
	if (!strcmp(name, "vkGetPhysicalDeviceProperties2")) return properties2;
	if (!strcmp(name, "vkGetPhysicalDeviceProperties2KHR")) return properties2;
	if (!strcmp(name, "vkEnumerateInstanceExtensionProperties")) return none_of_all;
	if (!strcmp(name, "vkEnumerateDeviceExtensionProperties")) return none_of_layer;
	if (!strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties")) return none;
	return nothing;
}
