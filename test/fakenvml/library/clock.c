// Time, and what grows with it: each counter is the integral of a reading that the file sets, over
// all configurations there have been since the driver was loaded.
#include "config.h"

#include <time.h>

double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

unsigned long long micros(int of_day) {
	struct timespec t;
	clock_gettime(of_day ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

// rate is what a reading adds to its integral each second. Garbage is an answer, not a rate.
static double rate(const struct config *c, int gpu, enum reading what) {
	long long v = c->gpu[gpu].value[what];
	return v == NONE ? 0 : v;
}

double energy(const struct config *c, int gpu, double t) {
	return c->gpu[gpu].energy + rate(c, gpu, R_power) * (t - c->since);
}

double load_integral(const struct config *c, int gpu, double t) {
	return c->gpu[gpu].load + rate(c, gpu, R_load) * (t - c->since);
}

double pcie_bytes(const struct config *c, int gpu, int receive, double t) {
	const struct gpu *g = &c->gpu[gpu];
	return (receive ? g->pcie_rx : g->pcie_tx) + rate(c, gpu, receive ? R_pcie_rx : R_pcie_tx) * (t - c->since);
}

double nvlink_kib(const struct config *c, int gpu, int link, int receive, double t) {
	const struct gpu *g = &c->gpu[gpu];
	double before = g->nvlink[receive][link];
	return g->down >> link & 1 ? before : before + rate(c, gpu, receive ? R_nvlink_rx : R_nvlink_tx) * (t - c->since);
}

// config_at is the configuration that held at a time of the day in µs.
const struct config *config_at(const struct config *c, unsigned long long of_day) {
	while (c->previous && c->of_day > of_day) c = c->previous;
	return c;
}

// carry_over begins the integrals of next where those of old end; a driver that comes back begins anew.
void carry_over(struct config *next, const struct config *old) {
	if (!old || next->loads != old->loads) return;
	const double t = next->since;
	for (int i = 0; i < MAX_GPUS; i++) {
		struct gpu *g = &next->gpu[i];
		g->energy = energy(old, i, t);
		g->load = load_integral(old, i, t);
		g->pcie_tx = pcie_bytes(old, i, 0, t);
		g->pcie_rx = pcie_bytes(old, i, 1, t);
		for (int link = 0; link < MAX_LINKS; link++)
			for (int receive = 0; receive < 2; receive++)
				g->nvlink[receive][link] = nvlink_kib(old, i, link, receive, t);
	}
	int told = next->gpm.n;
	for (int i = 0; i < told; i++) {
		struct load *l = &next->gpm.at[i];
		l->before = gpm_integral(old, l->gpu, l->gi, l->metric, t);
	}
	for (int i = 0; i < old->gpm.n; i++) { // those whose line is gone still have a past
		struct load l = old->gpm.at[i];
		int kept = 0;
		for (int k = 0; k < told; k++)
			kept |= next->gpm.at[k].gpu == l.gpu && next->gpm.at[k].gi == l.gi && next->gpm.at[k].metric == l.metric;
		if (kept) continue;
		l.derived = 1;
		l.before = gpm_integral(old, l.gpu, l.gi, l.metric, t);
		PUSH(next->gpm, l);
	}
}
