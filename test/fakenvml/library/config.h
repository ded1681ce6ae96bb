// What the file named by FAKENVML_CONFIG says. It is read again whenever it has changed, so a test
// can break and mend things while the library is open.
//
//	gpus N                 how many there are (default 2)
//	driver VERSION         default 580.65.06
//	cuda N                 default 13000
//	model WORDS            default Fake H100
//	load GPU PERCENT       utilization, default 40
//	throttle GPU BITS      clock event reasons, default 0
//	fail FUNCTION CODE [GPU]
//	hang FUNCTION [GPU]    does not return before the line is gone
//	lost GPU               every call on it answers 15, but for its handle
//	xid GPU CODE           told once, to who waits for it; lines are told in their order
#ifndef FAKENVML_CONFIG_H
#define FAKENVML_CONFIG_H

#include <nvml.h>

enum { MAX_GPUS = 16, MAX_LINES = 16, MAX_NAME = 64, ANY_GPU = -1 };

struct rule {
	char function[MAX_NAME];
	int code, gpu;
};

struct config {
	int gpus, cuda, load[MAX_GPUS], lost[MAX_GPUS];
	unsigned long long throttle[MAX_GPUS];
	char driver[80], model[96];
	struct rule fail[MAX_LINES], hang[MAX_LINES], xid[MAX_LINES];
	int fails, hangs, xids;
};

struct nvmlDevice_st {
	int index;
};

#pragma GCC visibility push(hidden) // the loader shows the library's names to the whole process

// config_now returns a copy of what holds now.
struct config config_now(void);

// driver_major is the first number of the driver's version.
int driver_major(const struct config *c);

// gate is passed by every call first. It hangs or fails where the file says so, and refuses what
// is asked before the library is initialised; gpu is ANY_GPU for calls that are of none.
nvmlReturn_t gate(const char *function, int gpu, struct config *c);

// micros is the time in µs, of the day or since the machine started.
unsigned long long micros(int of_day);

#pragma GCC visibility pop

#define ENTER(gpu) \
	struct config c; \
	nvmlReturn_t refused = gate(__func__, gpu, &c); \
	if (refused != NVML_SUCCESS) return refused

#define ENTER_DEVICE(d) \
	const int gpu = d.handle->index; \
	ENTER(gpu)

// ANSWER defines a call of a device with one result, an expression of gpu and c.
#define ANSWER(name, type, result) \
	nvmlReturn_t name(nvmlDevice_t d, type *out) { \
		ENTER_DEVICE(d); \
		*out = result; \
		return NVML_SUCCESS; \
	}

// ANSWER_TEXT does so for a string, given as to printf.
#define ANSWER_TEXT(name, ...) \
	nvmlReturn_t name(nvmlDevice_t d, char *out, unsigned int length) { \
		ENTER_DEVICE(d); \
		snprintf(out, length, __VA_ARGS__); \
		return NVML_SUCCESS; \
	}

#endif
