/* Functions of glibc's libc, libdl and libpthread; see glibc_floor.h. */
#define _GNU_SOURCE
#include "glibc_floor.h"

#if GLIBC_FLOOR
#include <dlfcn.h>
#include <pthread.h>

/* 2.34: moved from libdl and libpthread into libc. */
OLD_VERSION(FIRST_GLIBC, int, dladdr, (const void* address, Dl_info* info)) {
  return old_dladdr(address, info);
}
OLD_VERSION(FIRST_GLIBC, char*, dlerror, (void)) { return old_dlerror(); }
OLD_VERSION(FIRST_GLIBC, void*, dlopen, (const char* file, int mode)) {
  return old_dlopen(file, mode);
}
OLD_VERSION(FIRST_GLIBC, void*, dlsym, (void* restrict handle, const char* restrict name)) {
  return old_dlsym(handle, name);
}
OLD_VERSION(FIRST_GLIBC, int, pthread_mutex_trylock, (pthread_mutex_t * mutex)) {
  return old_pthread_mutex_trylock(mutex);
}
OLD_VERSION(FIRST_GLIBC, int, pthread_once, (pthread_once_t * control, void (*routine)(void))) {
  return old_pthread_once(control, routine);
}

/* 2.32: libstdc++'s headers ask it whether atomic operations can be spared. Zero: never. */
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

#else
typedef int not_empty;
#endif
