// A program that calls the fake library as any other would. Each scenario is a function, named on
// the command line; what is not as wanted is told and makes the program fail.
#ifndef PROBE_H
#define PROBE_H

#include <nvml.h>
#include <stdio.h>
#include <string.h>

void tell(const char *lines); // writes the configuration, and waits until it holds
void rest(int ms);
nvmlDevice_t device(unsigned int index);
void same(const char *file, int line, const char *what, double got, double want);
void within(const char *file, int line, const char *what, double got, double want, double by);
void equal(const char *file, int line, const char *what, const char *got, const char *want);

#define WANT(got, want) same(__FILE__, __LINE__, #got, got, want)
#define NEAR(got, want, by) within(__FILE__, __LINE__, #got, got, want, by)
#define TEXT(got, want) equal(__FILE__, __LINE__, #got, got, want)

void fallen(void);
void enumerated(void);
void unloaded(void);
void partitioned(void);
void repartitioned(void);
void averages(void);
void counters(void);
void fields(void);
void overrides(void);
void processes(void);
void events(void);
void identities(void);
void delays(void);
void speed(void);
void boards(void);
void leaks(void);
void nonsense(void);

#endif
