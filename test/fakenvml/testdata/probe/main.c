#include "probe.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static int failed;

void rest(int ms) { usleep(ms * 1000); }

void tell(const char *lines) {
	const char *path = getenv("FAKENVML_CONFIG");
	char next[4096];
	snprintf(next, sizeof next, "%s.next", path);
	FILE *f = fopen(next, "w");
	if (!f || fputs(lines, f) < 0 || fclose(f) || rename(next, path)) {
		perror(path);
		exit(2);
	}
	rest(15);
}

void within(const char *file, int line, const char *what, double got, double want, double by) {
	if (fabs(got - want) <= by) return;
	printf("%s:%d: %s = %.17g, want %.17g\n", file, line, what, got, want);
	failed = 1;
}

void same(const char *file, int line, const char *what, double got, double want) { within(file, line, what, got, want, 0); }

void equal(const char *file, int line, const char *what, const char *got, const char *want) {
	if (!strcmp(got, want)) return;
	printf("%s:%d: %s = %s, want %s\n", file, line, what, got, want);
	failed = 1;
}

nvmlDevice_t device(unsigned int index) {
	nvmlDevice_t d = {0};
	WANT(nvmlDeviceGetHandleByIndex_v2(index, &d), NVML_SUCCESS);
	return d;
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
#define SCENARIO(name) {#name, name},
	SCENARIO(fallen) SCENARIO(enumerated) SCENARIO(unloaded) SCENARIO(partitioned) SCENARIO(repartitioned) SCENARIO(averages)
	SCENARIO(counters) SCENARIO(fields) SCENARIO(overrides) SCENARIO(processes) SCENARIO(events) SCENARIO(identities)
	SCENARIO(delays) SCENARIO(speed) SCENARIO(boards) SCENARIO(leaks) SCENARIO(nonsense)
};

int main(int argc, char **argv) {
	for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof *scenarios; i++)
		if (!strcmp(scenarios[i].name, argv[1])) {
			scenarios[i].run();
			return failed;
		}
	fprintf(stderr, "no scenario %s\n", argc > 1 ? argv[1] : "");
	return 2;
}
