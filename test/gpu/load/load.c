// Keeps every device busy for a number of seconds, with nothing but the driver: it opens libcuda and
// hands it a kernel in PTX, which the driver compiles for whatever device there is.
//
//	load SECONDS
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_DEVICES = 64, THREADS = 256, BLOCKS_EACH = 8, TURNS = 1 << 22, MULTIPROCESSORS = 16 /* CU_DEVICE_ATTRIBUTE_… */ };

// One multiplication after the other, each waiting for the one before; the result is stored so that
// the compiler keeps the loop.
static const char kernel[] =
	".version 5.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry spin(.param .u64 out, .param .u32 turns)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .f32 %x;\n"
	"	.reg .b32 %i, %n, %t, %b, %d;\n"
	"	.reg .b64 %at, %off;\n"
	"	ld.param.u64 %at, [out];\n"
	"	ld.param.u32 %n, [turns];\n"
	"	cvta.to.global.u64 %at, %at;\n"
	"	mov.f32 %x, 0f3F800000;\n"
	"	mov.u32 %i, 0;\n"
	"again:\n"
	"	fma.rn.f32 %x, %x, 0f3F7FFFFF, 0f3A83126F;\n"
	"	add.s32 %i, %i, 1;\n"
	"	setp.lt.u32 %p, %i, %n;\n"
	"	@%p bra again;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mov.u32 %b, %ctaid.x;\n"
	"	mov.u32 %d, %ntid.x;\n"
	"	mad.lo.s32 %t, %b, %d, %t;\n"
	"	mul.wide.u32 %off, %t, 4;\n"
	"	add.s64 %at, %at, %off;\n"
	"	st.global.f32 [%at], %x;\n"
	"	ret;\n"
	"}\n";

struct device {
	void *context, *function;
	unsigned long long out;
	int blocks;
};

static void *library;

// The functions of the driver's interface, which all return 0 for success.
typedef int (*call)();

static call find(const char *name) {
	call f = (call)dlsym(library, name);
	if (f) return f;
	fprintf(stderr, "load: libcuda has no %s\n", name);
	exit(1);
}

static void must(const char *what, int code) {
	if (!code) return;
	fprintf(stderr, "load: %s: error %d\n", what, code);
	exit(1);
}

#define CALL(name, ...) must(#name, find(#name)(__VA_ARGS__))

static struct device prepare(int number) {
	struct device d = {0};
	void *module;
	int handle;
	CALL(cuDeviceGet, &handle, number);
	CALL(cuDeviceGetAttribute, &d.blocks, MULTIPROCESSORS, handle);
	d.blocks *= BLOCKS_EACH;
	CALL(cuDevicePrimaryCtxRetain, &d.context, handle);
	CALL(cuCtxSetCurrent, d.context);
	CALL(cuModuleLoadData, &module, kernel);
	CALL(cuModuleGetFunction, &d.function, module, "spin");
	CALL(cuMemAlloc_v2, &d.out, (size_t)d.blocks * THREADS * 4);
	return d;
}

static void launch(struct device *d) {
	unsigned int turns = TURNS;
	void *arguments[] = {&d->out, &turns};
	CALL(cuCtxSetCurrent, d->context);
	CALL(cuLaunchKernel, d->function, d->blocks, 1u, 1u, THREADS, 1u, 1u, 0u, (void *)NULL, arguments, (void **)NULL);
}

int main(int argc, char **argv) {
	static struct device devices[MAX_DEVICES];
	const char *path = getenv("GPUMETER_CUDA_LIBRARY");
	int n, seconds = argc == 2 ? atoi(argv[1]) : 0;
	if (seconds <= 0) {
		fprintf(stderr, "load: SECONDS\n");
		return 2;
	}
	library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "load: %s\n", dlerror());
		return 1;
	}
	CALL(cuInit, 0);
	CALL(cuDeviceGetCount, &n);
	if (n > MAX_DEVICES) n = MAX_DEVICES;
	for (int i = 0; i < n; i++) devices[i] = prepare(i);
	printf("loading %d devices\n", n);
	fflush(stdout);
	for (time_t end = time(NULL) + seconds; n && time(NULL) < end;) {
		for (int turn = 0; turn < 2; turn++) // the second waits on the device, so that it never has a pause
			for (int i = 0; i < n; i++) launch(&devices[i]);
		for (int i = 0; i < n; i++) {
			CALL(cuCtxSetCurrent, devices[i].context);
			CALL(cuCtxSynchronize);
		}
	}
	return n == 0;
}
