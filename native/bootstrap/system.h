/* What the bootstrap asks of the operating system. Each system has a file of its own
 * (system_linux.c); bootstrap.c knows none of them. */
#ifndef TORCHFORMER_BOOTSTRAP_SYSTEM_H
#define TORCHFORMER_BOOTSTRAP_SYSTEM_H

#include <stdbool.h>

enum { PATH_SIZE = 4096, MESSAGE_SIZE = 3 * PATH_SIZE };

/* What libtorch's libraries are called here, as in lib/runtime/native/platform.ts. */
extern const char* const system_c10;
extern const char* const system_torch_cpu;
extern const char* const system_torch_cuda;

/* Opens folder/name for good; NULL and a message otherwise. */
void* system_open_library(const char* folder, const char* name, char* message);

/* Whether the dynamic linker can open a library by its name or path. It stays open. */
bool system_can_open(const char* name);

/* The address of what a library exports, NULL when it does not. */
void* system_find_symbol(void* library, const char* name);

/* The path of the library of that name that is in the process; `found` needs PATH_SIZE bytes. */
bool system_library_in_process(const char* name, char* found);

/* The path without symbolic links, in PATH_SIZE bytes; false when there is no such file. */
bool system_real_path(const char* path, char* resolved);

/* Sets a variable in the environment that native code sees, unless it is set already. */
void system_set_default(const char* name, const char* value);

/* Workers of one process share this library: one at a time may open libraries. */
void system_lock(void);
void system_unlock(void);

/* Swaps two paths in one step; NULL, or the name of the error. */
const char* system_exchange(const char* first, const char* second);

#endif
