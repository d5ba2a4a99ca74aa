/* Linux: glibc's dynamic linker and system calls. */
#define _GNU_SOURCE
#include "system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

const char* const system_c10 = "libc10.so";
const char* const system_torch_cpu = "libtorch_cpu.so";
const char* const system_torch_cuda = "libtorch_cuda.so";

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

void system_lock(void) { pthread_mutex_lock(&opening); }

void system_unlock(void) { pthread_mutex_unlock(&opening); }

void* system_open_library(const char* folder, const char* name, char* message) {
  char path[2 * PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL) {
    const char* reason = dlerror();
    snprintf(message, MESSAGE_SIZE, "%s", reason != NULL ? reason : path);
  }
  return handle;
}

bool system_can_open(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL; }

void* system_find_symbol(void* library, const char* name) { return dlsym(library, name); }

bool system_real_path(const char* path, char* resolved) { return realpath(path, resolved) != NULL; }

void system_set_default(const char* name, const char* value) { setenv(name, value, 0); }

struct library_search {
  const char* name;
  char* found;
};

static int match_library(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct library_search* search = data;
  const char* slash = strrchr(info->dlpi_name, '/');
  if (slash == NULL || strcmp(slash + 1, search->name) != 0) return 0;
  if (realpath(info->dlpi_name, search->found) == NULL) {
    snprintf(search->found, PATH_SIZE, "%s", info->dlpi_name);
  }
  return 1;
}

bool system_library_in_process(const char* name, char* found) {
  struct library_search search = {name, found};
  return dl_iterate_phdr(match_library, &search) != 0;
}

const char* system_exchange(const char* first, const char* second) {
  /* The system call itself, because glibc has a wrapper only since 2.28. */
  if (syscall(SYS_renameat2, AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) == 0) return NULL;
  const int number = errno;
  static const struct {
    int number;
    const char* name;
  } known[] = {
      {ENOSYS, "ENOSYS"},
      {EINVAL, "EINVAL"},
      {ENOENT, "ENOENT"},
      {EACCES, "EACCES"},
      {EPERM, "EPERM"},
      {EXDEV, "EXDEV"},
      {EBUSY, "EBUSY"},
      {EROFS, "EROFS"},
      {ENOSPC, "ENOSPC"},
      {ENOTDIR, "ENOTDIR"},
      {ENAMETOOLONG, "ENAMETOOLONG"},
      {ELOOP, "ELOOP"},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (known[i].number == number) return known[i].name;
  }
  return "EIO";
}
