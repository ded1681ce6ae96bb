#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct config current;
static struct stat seen;
static int read_once;

static int valid(int gpu) { return gpu >= 0 && gpu < MAX_GPUS; }

static void add(struct rule *rules, int *n, const char *function, int code, int gpu) {
	if (*n == MAX_LINES) {
		fprintf(stderr, "fakenvml: more than %d lines of a sort\n", MAX_LINES);
		abort();
	}
	snprintf(rules[*n].function, sizeof rules[*n].function, "%s", function);
	rules[*n].code = code;
	rules[(*n)++].gpu = gpu;
}

static void parse(struct config *c, char *line) {
	char function[MAX_NAME];
	int a, b = ANY_GPU;
	unsigned long long bits;
	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "gpus %d", &a) == 1) c->gpus = a > MAX_GPUS ? MAX_GPUS : a;
	else if (sscanf(line, "cuda %d", &a) == 1) c->cuda = a;
	else if (sscanf(line, "driver %79s", c->driver) == 1) return;
	else if (sscanf(line, "model %95[^\n]", c->model) == 1) return;
	else if (sscanf(line, "load %d %d", &a, &b) == 2 && valid(a)) c->load[a] = b;
	else if (sscanf(line, "throttle %d %lli", &a, (long long *)&bits) == 2 && valid(a)) c->throttle[a] = bits;
	else if (sscanf(line, "fail %63s %d %d", function, &a, &b) >= 2) add(c->fail, &c->fails, function, a, b);
	else if (sscanf(line, "hang %63s %d", function, &b) >= 1) add(c->hang, &c->hangs, function, 0, b);
	else if (sscanf(line, "lost %d", &a) == 1 && valid(a)) c->lost[a] = 1;
	else if (sscanf(line, "xid %d %d", &a, &b) == 2 && valid(a)) add(c->xid, &c->xids, "", b, a);
	else if (*line && *line != '#') {
		fprintf(stderr, "fakenvml: what is %s?\n", line);
		abort();
	}
}

static void reload(void) {
	const char *path = getenv("FAKENVML_CONFIG");
	struct stat now = {0};
	if (path) stat(path, &now);
	if (read_once && now.st_ino == seen.st_ino && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec &&
	    now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_size == seen.st_size)
		return;
	struct config next = {.gpus = 2, .cuda = 13000, .driver = "580.65.06", .model = "Fake H100"};
	for (int i = 0; i < MAX_GPUS; i++) next.load[i] = 40;
	FILE *file = path ? fopen(path, "r") : NULL;
	if (file) {
		char line[256];
		while (fgets(line, sizeof line, file)) parse(&next, line);
		fclose(file);
	}
	current = next;
	seen = now;
	read_once = 1;
}

struct config config_now(void) {
	pthread_mutex_lock(&lock);
	reload();
	struct config c = current;
	pthread_mutex_unlock(&lock);
	return c;
}

int driver_major(const struct config *c) { return atoi(c->driver); }

static const struct rule *find(const struct rule *rules, int n, const char *function, int gpu) {
	for (int i = 0; i < n; i++)
		if (!strcmp(rules[i].function, function) && (rules[i].gpu == ANY_GPU || rules[i].gpu == gpu))
			return &rules[i];
	return NULL;
}

static int users; // Init without Shutdown

nvmlReturn_t gate(const char *function, int gpu, struct config *c) {
	int init = !strcmp(function, "nvmlInit_v2");
	for (*c = config_now(); find(c->hang, c->hangs, function, gpu); *c = config_now()) usleep(2000);
	const struct rule *failing = find(c->fail, c->fails, function, gpu);
	if (failing) return failing->code;
	if (!init && __atomic_load_n(&users, __ATOMIC_SEQ_CST) == 0) return NVML_ERROR_UNINITIALIZED;
	if (gpu != ANY_GPU && !valid(gpu)) return NVML_ERROR_INVALID_ARGUMENT;
	if (gpu != ANY_GPU && c->lost[gpu]) return NVML_ERROR_GPU_IS_LOST;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) {
	ENTER(ANY_GPU);
	__atomic_add_fetch(&users, 1, __ATOMIC_SEQ_CST);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) {
	ENTER(ANY_GPU);
	__atomic_sub_fetch(&users, 1, __ATOMIC_SEQ_CST);
	return NVML_SUCCESS;
}

unsigned long long micros(int of_day) {
	struct timespec t;
	clock_gettime(of_day ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}
