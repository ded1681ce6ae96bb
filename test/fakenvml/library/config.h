// What the file named by FAKENVML_CONFIG says. It is looked at again every few milliseconds, so a
// test can break and mend things while the library is open. Boards come first, then the other
// lines in their order. GPU is a number or * for all; # begins a comment; a line nobody knows
// ends the process.
//
//	gpus N                 how many there are, at most 64 (default 2); a handle of one beyond is lost
//	enumerate at-init      a GPU added is there only after the next Init; without it, at once
//	board NAME [GPU]       h200 h100 a100 l40s rtx4080 rtx2080 b200 gb200 v100 (boards.c), or
//	                       everything: supports what any of them does, also where they exclude each other
//	driver VERSION         decides which field ids there are; default as the library is built
//	cuda N                 default as the library is built
//	model WORDS            default Fake H100
//	uuid GPU WORD          also serial GPU WORD|none, pci GPU BDF
//	set GPU NAME VALUE     a reading of readings.h; none: not supported
//	field GPU ID [SCOPE] TYPE VALUE   what GetFieldValues answers; TYPE double uint ulong ulonglong
//	                       longlong int ushort, or error and a code
//	garbage GPU            each measured number is one of those drivers have been seen to invent
//	load GPU PERCENT       utilization, default 40; of memory the half
//	throttle GPU BITS      clock event reasons, default 0
//	link GPU N up|down     an NVLink; its counters hold while it is down
//	recovery GPU N         the action wanted
//	cc ENVIRONMENT FEATURE DEVTOOLS    confidential computing, default 0 0 0
//	fabric GPU STATE STATUS HEALTHSUMMARY MASK
//	mig GPU off            default
//	mig GPU on PROFILE:GI:CI[,...]    such as 1g.10gb:7:0,3g.40gb:2:0; - is a hole among the indexes
//	used GPU GI BYTES      memory used in a GPU instance, default what its processes use
//	gpm GPU[/GI] ID VALUE  the metric's load from now on, in its unit; default follows load
//	process GPU PID BYTES [SMUTIL] [GI CI] [compute|graphics|mps]    BYTES may be none
//	xid GPU CODE [GI CI]   told once, to who waits for it; lines are told in their order, and those
//	                       told stay where they are in the file
//	event GPU TYPE DATA    the same for any type of event; "set GPU events MASK" says which there are
//	xids last              of several XIDs of a GPU not yet told only the last is
//	fail FUNCTION CODE [GPU]
//	hang FUNCTION [GPU]    does not return before the line is gone
//	lost GPU               every call on it answers 15, but for its handle
//	fallen GPU             the same, and stays so until Shutdown and Init; while the line is there,
//	                       Init does not find it, and those behind move up
//	unload                 the driver is gone: Init answers 9, and so does every call of those
//	                       initialised before, also when it is back, until Shutdown and Init; then
//	                       handles of before answer 2, and the counters have begun again
//	mismatch               Init answers 18
//	init_ms N              Init takes so long
//	delay_ns N             each call takes so long
#ifndef FAKENVML_CONFIG_H
#define FAKENVML_CONFIG_H

#include "readings.h"

#include <nvml.h>
#include <stddef.h>

enum {
	MAX_GPUS = 64, MAX_NAME = 64, MAX_TEXT = 96, MAX_LINKS = NVML_NVLINK_MAX_LINKS, MAX_INSTANCES = 16,
	MAX_FIELDS = 512, MAX_METRICS = NVML_GPM_METRIC_MAX, ANY_GPU = -1, WHOLE_GPU = -1,
};

struct rule {
	char function[MAX_NAME];
	int code, gpu;
};

struct event {
	int gpu, gi, ci;
	unsigned long long type, data;
};

struct process {
	int gpu, pid, sm, gi, ci;
	char kind; // c, g or m
	unsigned long long bytes;
};

struct override {
	int gpu, id, failure, any_scope;
	unsigned int scope;
	nvmlValueType_t type;
	nvmlValue_t value;
};

struct load { // of a GPM metric, from the configuration's beginning on
	int gpu, gi, metric;
	double value, before; // before: its integral until then
	int derived;          // its line is gone, and it follows the GPU's load again
};

struct used {
	int gpu, gi;
	unsigned long long bytes;
};

struct instance {
	int there;
	unsigned int gi, ci;
	char profile[32];
};

struct gpu {
	long long value[READINGS];
	char model[MAX_TEXT], uuid[MAX_TEXT], serial[32];
	unsigned int domain, bus, device;
	unsigned long long down; // links, a bit each
	int lost, fallen, garbage, mig, instances;
	struct instance instance[MAX_INSTANCES];
	double energy, load, pcie_tx, pcie_rx; // integrals until the configuration began
	double nvlink[2][MAX_LINKS];
};

#define LIST(type) struct { type *at; int n; }

// config is never changed nor freed once it is in force.
struct config {
	const struct config *previous;
	double since;                 // seconds since the machine started
	unsigned long long of_day;    // the same in µs of the day
	int gpus, at_init, cuda, major, unload, mismatch, init_ms, last_xid;
	int loads;                    // how often the driver came back
	unsigned int cc[3];
	long delay_ns;
	char driver[80];
	LIST(struct rule) fails, hangs;
	LIST(struct event) events;
	LIST(struct process) processes;
	LIST(struct override) overrides;
	LIST(struct load) gpm;
	LIST(struct used) used;
	short row[MAX_FIELDS];        // of fields.c, by field id; 0: none
	struct gpu gpu[MAX_GPUS];
};

// A handle, of a GPU or of a MIG device. Handles are never freed, so that one of before the last
// Init can be told from a good one.
struct nvmlDevice_st {
	int gpu, mig, generation;
	unsigned int gi, ci;
	char profile[32];
	struct nvmlDevice_st *next;
};

#pragma GCC visibility push(hidden) // the loader shows the library's names to the whole process

// config.c, parse.c
const struct config *config_now(void);
const struct config *config_fresh(void); // looks at the file, however recently that was done
void config_parse(struct config *c, const char *path);
void *grow(void *at, int n, size_t size);
#define PUSH(list, ...) ((list).at = grow((list).at, (list).n, sizeof *(list).at), (list).at[(list).n++] = __VA_ARGS__)

// boards.c, readings.c
void board_reset(struct gpu *g, int number);
int board_set(struct gpu *g, const char *board);
int reading_named(const char *name); // or -1
void settle(struct gpu *g);
int has(const struct config *c, int gpu, enum reading what);
long long get(const struct config *c, int gpu, enum reading what);

// clock.c: time, and what grows with it
double now(void);                      // seconds since the machine started
unsigned long long micros(int of_day); // µs of the day or since the machine started
double energy(const struct config *c, int gpu, double t);
double load_integral(const struct config *c, int gpu, double t);
double pcie_bytes(const struct config *c, int gpu, int receive, double t);
double nvlink_kib(const struct config *c, int gpu, int link, int receive, double t);
double gpm_integral(const struct config *c, int gpu, int gi, int metric, double t);
const struct config *config_at(const struct config *c, unsigned long long of_day);
void carry_over(struct config *next, const struct config *old);

// handle.c
int present(const struct config *c, int gpu);
int gpu_at(const struct config *c, unsigned int index); // or -1
int index_of(int gpu);
unsigned int enumerated(const struct config *c);
void enumerate(const struct config *c);
void see_fallen(const struct config *c);
int generation(void);
struct nvmlDevice_st *handle_of(int gpu);

// mig.c
const struct instance *instance_of(const struct config *c, const struct nvmlDevice_st *d);
int gi_there(const struct config *c, int gpu, int gi);
nvmlReturn_t mig_handle(const struct config *c, int gpu, unsigned int index, nvmlDevice_t *d);
void mig_uuid(char *out, size_t size, int gpu, const struct instance *i);
unsigned long long mig_memory(const struct instance *i);
unsigned long long mig_used(const struct config *c, int gpu, unsigned int gi);

// fields.c
void index_fields(struct config *c);

// stats.c
struct call { // where a function counts its calls
	const char *name;
	_Atomic(struct record *) record;
};
enum tally { USERS, SAMPLES, SETS };
void count(struct call *call, const struct nvmlDevice_st *d);
long tally(enum tally what, int by);

// gate.c: gate is passed by every call first. It counts it, hangs or fails where the file says so,
// and refuses what is asked before Init or of a handle that is no good; again does so without counting.
// A call that releases something is not refused because the driver is gone.
enum scope { BEFORE_INIT, RELEASING, NO_DEVICE, WHOLE, EITHER };
nvmlReturn_t gate(struct call *call, enum scope scope, const struct nvmlDevice_st *d, const struct config **c);
nvmlReturn_t again(struct call *call, enum scope scope, const struct nvmlDevice_st *d, const struct config **c);
nvmlReturn_t of_gpu(struct call *call, int gpu, const struct config **c); // where a GPU is asked for by number

#pragma GCC visibility pop

#define ENTER_AS(scope, handle) \
	static struct call call = {.name = __func__}; \
	const struct config *c; \
	const nvmlReturn_t refused = gate(&call, scope, handle, &c); \
	if (refused != NVML_SUCCESS) return refused

#define ENTER() ENTER_AS(NO_DEVICE, NULL)

// ENTER_DEVICE is for what only a whole GPU answers, ENTER_EITHER for what a MIG device does too.
#define ENTER_DEVICE(d) \
	ENTER_AS(WHOLE, (d).handle); \
	const int gpu __attribute__((unused)) = (d).handle->gpu

#define ENTER_EITHER(d) \
	ENTER_AS(EITHER, (d).handle); \
	const int gpu __attribute__((unused)) = (d).handle->gpu

// NOT_UNDER_MIG is for what a GPU does not answer while it is partitioned.
#define NOT_UNDER_MIG() \
	if (c->gpu[gpu].mig) return NVML_ERROR_NOT_SUPPORTED

#define TAKE(to, what) \
	do { \
		if (!has(c, gpu, what)) return NVML_ERROR_NOT_SUPPORTED; \
		(to) = get(c, gpu, what); \
	} while (0)

// ANSWER defines a call of a GPU with one result, a reading.
#define ANSWER(name, type, what) \
	nvmlReturn_t name(nvmlDevice_t d, type *out) { \
		ENTER_DEVICE(d); \
		TAKE(*out, what); \
		return NVML_SUCCESS; \
	}

// ANSWER_TEXT defines one with a string, given as to printf.
#define ANSWER_TEXT(name, ...) \
	nvmlReturn_t name(nvmlDevice_t d, char *out, unsigned int length) { \
		ENTER_DEVICE(d); \
		return text(out, length, __VA_ARGS__); \
	}

#define VERSIONED(p, wanted) \
	if ((p)->version != (wanted)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH

nvmlReturn_t text(char *out, unsigned int length, const char *format, ...) __attribute__((format(printf, 3, 4), visibility("hidden")));

#endif
