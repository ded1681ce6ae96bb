// What the fake nvidia-smi tells: texts by the path of their element.
#ifndef SMI_H
#define SMI_H

#include <nvml.h>

// CALL calls what the library has, and answers as the driver does where it has not.
void *find(const char *name);
#define CALL(name, ...) ((__typeof__(&name))find(#name))(__VA_ARGS__)

// say tells the text of an element, or that there is none, as the code says.
void say(const char *path, nvmlReturn_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *said(const char *path); // or NULL

int driver(void); // the first number of its version

void tell_board(nvmlDevice_t d, unsigned int index);
void tell_state(nvmlDevice_t d);
void tell_fabric(nvmlDevice_t d);
void tell_instances(nvmlDevice_t d);
void tell_processes(nvmlDevice_t d);

// In the driver's words.
const char *yes(unsigned int n);
const char *enabled(unsigned int n);
unsigned long long mib(unsigned long long bytes); // rounded up, as nvidia-smi does

#endif
