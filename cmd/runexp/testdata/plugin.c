// A stand-in for a plugin of ONNX Runtime, which STATE has fail in one of several ways.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *state) { return !strcmp(getenv("STATE"), state); }

struct api { void *(*create_status)(int code, const char *text); };
struct base { const struct api *(*get)(unsigned version); };

void *CreateEpFactories(const char *name, const struct base *base, const void *logger, void **factories,
	size_t most, size_t *n) {
	*n = 0;
	if (is("old")) return base->get(1)->create_status(1, "version 99 of the interface is needed");
	if (is("crash")) *(volatile int *)8 = 1;
	if (is("exit")) {
		fprintf(stderr, "the driver gives up\n");
		exit(5);
	}
	if (is("loud")) {
		for (int i = 0; i < 20000; i++) puts("a line on stdout"), fputs("a line on stderr\n", stderr);
		fflush(stdout);
	}
	return 0;
}

void *ReleaseEpFactory(void *factory) { return 0; }
