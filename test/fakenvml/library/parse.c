// The file's lines, one function a sort. config.h says what they mean.
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORDS = 16 };

struct line {
	const char *whole;
	char *word[MAX_WORDS];
	int n;
	struct config *c;
};

static void bad(const struct line *l) {
	fprintf(stderr, "fakenvml: what is %s?\n", l->whole);
	abort();
}

static long long number(const struct line *l, int i) {
	char *end;
	if (i >= l->n) bad(l);
	errno = 0;
	long long v = strtoll(l->word[i], &end, 0);
	if (errno == ERANGE) {
		errno = 0;
		v = (long long)strtoull(l->word[i], &end, 0);
	}
	if (*end || end == l->word[i] || errno) bad(l);
	return v;
}

static double real(const struct line *l, int i) {
	char *end;
	if (i >= l->n) bad(l);
	double v = strtod(l->word[i], &end);
	if (*end || end == l->word[i]) bad(l);
	return v;
}

static int below(const struct line *l, int i, int limit) {
	long long v = number(l, i);
	if (v < 0 || v >= limit) bad(l);
	return v;
}

// range is the GPUs a word names, to but not with *end.
static int range(const struct line *l, int i, int *end) {
	if (i >= l->n) bad(l);
	if (!strcmp(l->word[i], "*")) {
		*end = MAX_GPUS;
		return 0;
	}
	int gpu = below(l, i, MAX_GPUS);
	*end = gpu + 1;
	return gpu;
}

// EACH runs what follows for each GPU that the first word after the line's name stands for.
#define EACH(l, g) \
	int end_, i_ = range(l, 1, &end_); \
	for (struct gpu *g = &(l)->c->gpu[i_]; i_ < end_; g = &(l)->c->gpu[++i_ < MAX_GPUS ? i_ : 0])

static void words(const struct line *l, char *to, size_t size, int first) {
	if (first >= l->n) bad(l);
	int n = 0;
	for (int i = first; i < l->n && n < (int)size; i++) n += snprintf(to + n, size - n, "%s%s", i > first ? " " : "", l->word[i]);
}

static void parse_model(const struct line *l) {
	for (int i = 0; i < MAX_GPUS; i++) words(l, l->c->gpu[i].model, MAX_TEXT, 1);
}

static void parse_board(const struct line *l) {
	int end = MAX_GPUS, first = 0;
	if (l->n > 2) first = range(l, 2, &end);
	for (int i = first; i < end; i++) {
		board_reset(&l->c->gpu[i], i);
		if (l->n < 2 || !board_set(&l->c->gpu[i], l->word[1])) bad(l);
	}
}

static void parse_uuid(const struct line *l) { EACH(l, g) words(l, g->uuid, sizeof g->uuid, 2); }

static void parse_serial(const struct line *l) {
	EACH(l, g) {
		words(l, g->serial, sizeof g->serial, 2);
		if (!strcmp(g->serial, "none")) *g->serial = 0;
	}
}

static void parse_pci(const struct line *l) {
	unsigned int function;
	EACH(l, g)
		if (l->n < 3 || sscanf(l->word[2], "%x:%x:%x.%x", &g->domain, &g->bus, &g->device, &function) != 4) bad(l);
}

static void parse_set(const struct line *l) {
	int what = l->n == 4 ? reading_named(l->word[2]) : -1;
	if (what < 0) bad(l);
	long long v = strcmp(l->word[3], "none") ? number(l, 3) : NONE;
	EACH(l, g) g->value[what] = v;
}

static void parse_load(const struct line *l) {
	long long v = number(l, 2);
	EACH(l, g) g->value[R_load] = v;
}

static void parse_throttle(const struct line *l) {
	long long v = number(l, 2);
	EACH(l, g) g->value[R_reasons] = v;
}

static void parse_recovery(const struct line *l) {
	long long v = number(l, 2);
	EACH(l, g) g->value[R_recovery] = v;
}

static void parse_fabric(const struct line *l) {
	static const enum reading order[] = {R_fabric_state, R_fabric_status, R_fabric_health, R_fabric_mask};
	EACH(l, g)
		for (int i = 0; i < 4; i++) g->value[order[i]] = number(l, 2 + i);
}

static void parse_link(const struct line *l) {
	int up = l->n == 4 && !strcmp(l->word[3], "up");
	if (!up && (l->n != 4 || strcmp(l->word[3], "down"))) bad(l);
	unsigned long long bit = 1ull << below(l, 2, MAX_LINKS);
	EACH(l, g) g->down = up ? g->down & ~bit : g->down | bit;
}

static void parse_garbage(const struct line *l) { EACH(l, g) g->garbage = 1; }
static void parse_lost(const struct line *l) { EACH(l, g) g->lost = 1; }
static void parse_fallen(const struct line *l) { EACH(l, g) g->fallen = 1; }

static void parse_mig(const struct line *l) {
	if (l->n < 3) bad(l);
	EACH(l, g) {
		g->mig = !strcmp(l->word[2], "on");
		if (!g->mig && strcmp(l->word[2], "off")) bad(l);
		g->instances = 0;
		if (l->n < 4) continue;
		char all[256], *rest = all, *one;
		snprintf(all, sizeof all, "%s", l->word[3]);
		while ((one = strsep(&rest, ","))) {
			struct instance *in = &g->instance[g->instances];
			if (++g->instances > MAX_INSTANCES) bad(l);
			*in = (struct instance){0};
			if (!strcmp(one, "-")) continue;
			in->there = 1;
			if (sscanf(one, "%31[^:]:%u:%u", in->profile, &in->gi, &in->ci) != 3) bad(l);
		}
	}
}

static void parse_used(const struct line *l) {
	int end, gpu = range(l, 1, &end);
	for (; gpu < end; gpu++) PUSH(l->c->used, (struct used){gpu, number(l, 2), number(l, 3)});
}

static void parse_gpm(const struct line *l) {
	if (l->n != 4) bad(l);
	char *slash = strchr(l->word[1], '/');
	if (slash) *slash = 0;
	int gi = slash ? atoi(slash + 1) : WHOLE_GPU, end, gpu = range(l, 1, &end);
	for (; gpu < end; gpu++) {
		struct load new = {gpu, gi, below(l, 2, MAX_METRICS), real(l, 3)};
		int i = 0;
		while (i < l->c->gpm.n && (l->c->gpm.at[i].gpu != gpu || l->c->gpm.at[i].gi != gi || l->c->gpm.at[i].metric != new.metric)) i++;
		if (i < l->c->gpm.n) l->c->gpm.at[i] = new;
		else PUSH(l->c->gpm, new);
	}
}

static void parse_process(const struct line *l) {
	struct process p = {.pid = number(l, 2), .sm = -1, .gi = -1, .ci = -1, .kind = 'c'};
	if (l->n < 4) bad(l);
	p.bytes = strcmp(l->word[3], "none") ? (unsigned long long)number(l, 3) : ~0ull;
	int n = l->n, last = l->word[n - 1][0];
	if (!strcmp(l->word[n - 1], "compute") || !strcmp(l->word[n - 1], "graphics") || !strcmp(l->word[n - 1], "mps")) {
		p.kind = last;
		n--;
	}
	if (n > 7) bad(l);
	if (n == 5 || n == 7) p.sm = number(l, 4);
	if (n >= 6) {
		p.gi = number(l, n - 2);
		p.ci = number(l, n - 1);
	}
	int end;
	for (p.gpu = range(l, 1, &end); p.gpu < end; p.gpu++) PUSH(l->c->processes, p);
}

static const char *const types[] = {"double", "uint", "ulong", "ulonglong", "longlong", "int", "ushort"}; // nvmlValueType_t

static void parse_field(const struct line *l) {
	if (l->n != 5 && l->n != 6) bad(l);
	struct override o = {.id = below(l, 2, MAX_FIELDS), .any_scope = l->n == 5};
	if (l->n == 6) o.scope = number(l, 3);
	const char *type = l->word[l->n - 2];
	if (!strcmp(type, "error")) o.failure = number(l, l->n - 1);
	else {
		while (o.type < NVML_VALUE_TYPE_COUNT && strcmp(types[o.type], type)) o.type++;
		switch (o.type) {
		case NVML_VALUE_TYPE_DOUBLE: o.value.dVal = real(l, l->n - 1); break;
		case NVML_VALUE_TYPE_UNSIGNED_INT: o.value.uiVal = number(l, l->n - 1); break;
		case NVML_VALUE_TYPE_SIGNED_INT: o.value.siVal = number(l, l->n - 1); break;
		case NVML_VALUE_TYPE_UNSIGNED_SHORT: o.value.usVal = number(l, l->n - 1); break;
		case NVML_VALUE_TYPE_COUNT: bad(l); break;
		default: o.value.sllVal = number(l, l->n - 1);
		}
	}
	int end;
	for (o.gpu = range(l, 1, &end); o.gpu < end; o.gpu++) PUSH(l->c->overrides, o);
}

static void parse_xid(const struct line *l) {
	struct event e = {.type = nvmlEventTypeXidCriticalError, .data = number(l, 2), .gi = -1, .ci = -1};
	if (l->n == 5) {
		e.gi = number(l, 3);
		e.ci = number(l, 4);
	}
	int end;
	for (e.gpu = range(l, 1, &end); e.gpu < end; e.gpu++) PUSH(l->c->events, e);
}

static void parse_event(const struct line *l) {
	struct event e = {.type = number(l, 2), .data = number(l, 3), .gi = -1, .ci = -1};
	int end;
	for (e.gpu = range(l, 1, &end); e.gpu < end; e.gpu++) PUSH(l->c->events, e);
}

static struct rule rule(const struct line *l, int code, int gpu) {
	struct rule r = {.code = code, .gpu = ANY_GPU};
	if (l->n < 2 || strncmp(l->word[1], "nvml", 4)) bad(l);
	snprintf(r.function, sizeof r.function, "%s", l->word[1]);
	if (l->n > gpu && strcmp(l->word[gpu], "*")) r.gpu = below(l, gpu, MAX_GPUS);
	return r;
}

static void parse_fail(const struct line *l) { PUSH(l->c->fails, rule(l, number(l, 2), 3)); }
static void parse_hang(const struct line *l) { PUSH(l->c->hangs, rule(l, 0, 2)); }
static void parse_gpus(const struct line *l) { l->c->gpus = below(l, 1, MAX_GPUS + 1); }
static void parse_cuda(const struct line *l) { l->c->cuda = number(l, 1); }
static void parse_init_ms(const struct line *l) { l->c->init_ms = number(l, 1); }
static void parse_delay_ns(const struct line *l) { l->c->delay_ns = number(l, 1); }

static void parse_cc(const struct line *l) {
	for (int i = 0; i < 3; i++) l->c->cc[i] = number(l, 1 + i);
}

static void parse_unload(const struct line *l) { l->c->unload = 1; }
static void parse_mismatch(const struct line *l) { l->c->mismatch = 1; }
static void parse_driver(const struct line *l) { words(l, l->c->driver, sizeof l->c->driver, 1); }

static void parse_enumerate(const struct line *l) {
	if (l->n != 2 || strcmp(l->word[1], "at-init")) bad(l);
	l->c->at_init = 1;
}

static void parse_xids(const struct line *l) {
	if (l->n != 2 || strcmp(l->word[1], "last")) bad(l);
	l->c->last_xid = 1;
}

static const struct {
	const char *name;
	void (*parse)(const struct line *);
} sorts[] = {
#define SORT(name) {#name, parse_##name},
	SORT(gpus) SORT(enumerate) SORT(driver) SORT(cuda) SORT(model) SORT(uuid) SORT(serial) SORT(pci) SORT(set) SORT(field)
	SORT(garbage) SORT(load) SORT(throttle) SORT(link) SORT(recovery) SORT(fabric) SORT(mig) SORT(used) SORT(gpm) SORT(process)
	SORT(xid) SORT(event) SORT(xids) SORT(fail) SORT(hang) SORT(lost) SORT(fallen) SORT(unload) SORT(mismatch) SORT(init_ms)
	SORT(delay_ns) SORT(cc)
};

// parse_line takes a line of one of the two passes, boards or not.
static void parse_line(struct config *c, char *text, int boards) {
	char copy[512];
	struct line l = {.c = c, .whole = copy};
	text[strcspn(text, "\n")] = 0;
	snprintf(copy, sizeof copy, "%s", text);
	for (char *rest = text, *word; (word = strsep(&rest, " \t")) && *word != '#';) {
		if (!*word) continue;
		if (l.n == MAX_WORDS) bad(&l);
		l.word[l.n++] = word;
	}
	if (!l.n || (strcmp(l.word[0], "board") == 0) != boards) return;
	if (boards) {
		parse_board(&l);
		return;
	}
	for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
		if (!strcmp(sorts[i].name, l.word[0])) {
			sorts[i].parse(&l);
			return;
		}
	bad(&l);
}

#if DRIVER >= 610
#define DRIVER_VERSION "610.57.04"
#define CUDA 13030
#elif DRIVER >= 595
#define DRIVER_VERSION "595.71.05"
#define CUDA 13020
#elif DRIVER >= 590
#define DRIVER_VERSION "590.48.01"
#define CUDA 13010
#elif DRIVER >= 580
#define DRIVER_VERSION "580.65.06"
#define CUDA 13000
#elif DRIVER >= 570
#define DRIVER_VERSION "570.124.06"
#define CUDA 12080
#elif DRIVER >= 550
#define DRIVER_VERSION "550.144.03"
#define CUDA 12040
#elif DRIVER >= 535
#define DRIVER_VERSION "535.183.06"
#define CUDA 12020
#else
#define DRIVER_VERSION "450.248.02"
#define CUDA 11000
#endif

void config_parse(struct config *c, const char *path) {
	c->gpus = 2;
	c->cuda = CUDA;
	snprintf(c->driver, sizeof c->driver, DRIVER_VERSION);
	for (int i = 0; i < MAX_GPUS; i++) board_reset(&c->gpu[i], i);
	for (int boards = 1; boards >= 0; boards--) {
		FILE *file = path ? fopen(path, "r") : NULL;
		if (!file) break;
		char text[512];
		while (fgets(text, sizeof text, file)) parse_line(c, text, boards);
		fclose(file);
	}
	c->major = atoi(c->driver);
	for (int i = 0; i < MAX_GPUS; i++) settle(&c->gpu[i]);
}

void *grow(void *at, int n, size_t size) {
	if (n & (n - 1)) return at; // there is room up to the next power of two
	at = realloc(at, (n ? 2 * n : 1) * size);
	if (!at) abort();
	return at;
}
