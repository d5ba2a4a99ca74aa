/* The functions of the operating system that the bootstrap needs. Each system has its own file
 * (system_linux.c); bootstrap.c is independent of them. */
#ifndef TORCHFORMER_BOOTSTRAP_SYSTEM_H
#define TORCHFORMER_BOOTSTRAP_SYSTEM_H

#include <stdbool.h>

enum { PATH_SIZE = 4096, MESSAGE_SIZE = 3 * PATH_SIZE };

/* The names of libtorch's libraries, as in lib/runtime/native/platform.ts. */
extern const char* const system_c10;
extern const char* const system_torch_cpu;
extern const char* const system_torch_cuda;

/* Opens folder/name permanently; returns NULL and a message on failure. */
void* system_open_library(const char* folder, const char* name, char* message);

/* Whether the dynamic linker can open a library by its name or path. It stays open. */
bool system_can_open(const char* name);

/* The address of an exported symbol, or NULL if there is none. */
void* system_find_symbol(void* library, const char* name);

/* The path of the loaded library of that name; `found` needs PATH_SIZE bytes. */
bool system_library_in_process(const char* name, char* found);

/* The path without symbolic links, in PATH_SIZE bytes; false if there is no such file. */
bool system_real_path(const char* path, char* resolved);

/* Sets a variable in the environment that native code sees, unless it is already set. */
void system_set_default(const char* name, const char* value);

/* The workers of a process share this library: only one at a time may open libraries. */
void system_lock(void);
void system_unlock(void);

/* Swaps two paths atomically; returns NULL, or the name of the error. */
const char* system_exchange(const char* first, const char* second);

#endif
