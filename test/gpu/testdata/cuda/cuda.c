// A libcuda that has one device and runs nothing: it wants the loader's calls to make sense, tells
// where they do not, and counts the launches for cuCtxSynchronize to tell.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3 };

static int initialized, context, module, function, current, launches;
static const char *image;
static unsigned long long bytes;

static int want(int holds, const char *what) {
	if (!holds) fprintf(stderr, "fake libcuda: %s\n", what);
	return holds ? 0 : INVALID_VALUE;
}

int cuInit(unsigned int flags) {
	initialized = 1;
	return want(flags == 0, "flags of cuInit");
}

int cuDeviceGetCount(int *n) {
	*n = 1;
	return initialized ? 0 : NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int ordinal) {
	*device = 7;
	return want(ordinal == 0, "there is one device");
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
	*value = 132;
	return want(device == 7 && attribute == 16, "the multiprocessors of the device");
}

int cuDevicePrimaryCtxRetain(void **out, int device) {
	*out = &context;
	return want(device == 7, "context of the device");
}

int cuCtxSetCurrent(void *c) {
	current = c == &context;
	return want(current, "a context that was retained");
}

int cuModuleLoadData(void **out, const void *text) {
	*out = &module;
	image = text;
	return want(current && !strncmp(image, ".version", 8), "PTX in a context");
}

int cuModuleGetFunction(void **out, void *of, const char *name) {
	char entry[64];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	*out = &function;
	return want(of == &module && strstr(image, entry), "a function of the module");
}

int cuMemAlloc_v2(unsigned long long *out, size_t size) {
	*out = 0x7000000000;
	bytes = size;
	return want(current && size > 0, "memory in a context");
}

int cuLaunchKernel(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
                   unsigned int shared, void *stream, void **arguments, void **extra) {
	int code = want(current && f == &function && gy * gz * by * bz == 1 && !shared && !stream && !extra, "a launch of the function");
	if (!code) code = want(gx * bx * 4ull == bytes, "as many threads as there is memory for");
	if (!code) code = want(*(unsigned long long *)arguments[0] == 0x7000000000 && *(unsigned int *)arguments[1] > 0, "the memory and the turns");
	launches++;
	return code;
}

int cuCtxSynchronize(void) {
	usleep(20000);
	if (launches) fprintf(stderr, "%d launches\n", launches);
	launches = 0;
	return want(current, "a context");
}
