/* The first native code of the package: opens libtorch by absolute path, before the addon that is
 * linked against it is loaded. It needs no libtorch itself, so it can say what is wrong when there
 * is none or the wrong one.
 *
 * Why not let the dynamic linker find libtorch: package managers lay out folders in ways that no
 * relative RUNPATH covers, and the folder is the user's choice. glibc satisfies the addon's
 * "libtorch_cpu.so" from the library of that name that is already open.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <node_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <torch/headeronly/version.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

enum { PATH_SIZE = 4096, MESSAGE_SIZE = 3 * PATH_SIZE };

typedef unsigned long long (*abi_version_function)(void);

/* Workers of one process share this library, so opening is serialised. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static napi_value fail(napi_env env, const char* code, const char* message) {
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (!pending) napi_throw_error(env, code, message);
  return NULL;
}

/* Copies a string argument; false and a pending TypeError when it is none or too long. */
static bool string_argument(napi_env env, napi_value value, char* target) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected a string");
    return false;
  }
  if (length >= PATH_SIZE) {
    napi_throw_type_error(env, NULL, "the path is longer than the system allows");
    return false;
  }
  napi_get_value_string_utf8(env, value, target, PATH_SIZE, &length);
  return strlen(target) == length;
}

static bool set_string(napi_env env, napi_value object, const char* key, const char* text) {
  napi_value value;
  return napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value) == napi_ok &&
         napi_set_named_property(env, object, key, value) == napi_ok;
}

static bool set_uint64(napi_env env, napi_value object, const char* key,
                       unsigned long long number) {
  napi_value value;
  return napi_create_bigint_uint64(env, number, &value) == napi_ok &&
         napi_set_named_property(env, object, key, value) == napi_ok;
}

/* ---- which libtorch is in the process ------------------------------------------------------- */

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

/* The process is asked, not a variable of ours: a second copy of this package, or another package
 * with a libtorch of its own, would not see the variable. `found` needs PATH_SIZE bytes. */
static bool library_in_process(const char* name, char* found) {
  struct library_search search = {name, found};
  return dl_iterate_phdr(match_library, &search) != 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Both variables are read once, when the libraries are opened. C's environment, because
 * `process.env` of a worker thread is a copy that native code never sees. */
static void prepare_environment(void) {
  /* Idle OpenMP threads spin for a while before they sleep. The default (300,000) makes a parallel
   * loop many times slower when another process uses the same cores. A linear of 480x128x128 on two
   * cores, mean: 0.11 ms with 1,000 and with 300,000 alone, 0.15 ms with 0; beside busy processes
   * 0.5 ms with 1,000, 2 ms with 10,000, 8 ms with 300,000. */
  if (getenv("GOMP_SPINCOUNT") == NULL && getenv("OMP_WAIT_POLICY") == NULL) {
    setenv("GOMP_SPINCOUNT", "1000", 1);
  }
  /* Huge pages for big buffers: a fresh 300 MB gradient costs a fifth of the page faults. */
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
}

/* Opens folder/name for good; NULL and a message otherwise. */
static void* open_library(const char* folder, const char* name, char* message) {
  char path[PATH_SIZE + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL) {
    const char* reason = dlerror();
    snprintf(message, MESSAGE_SIZE, "%s", reason != NULL ? reason : path);
  }
  return handle;
}

/* A library of this name from another folder would win silently over ours: refuse. */
static bool other_copy_in_process(const char* folder, const char* name, char* message) {
  char loaded[PATH_SIZE];
  char wanted[PATH_SIZE + 64];
  char resolved[PATH_SIZE];
  if (!library_in_process(name, loaded)) return false;
  snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
  if (realpath(wanted, resolved) != NULL && strcmp(resolved, loaded) == 0) return false;
  snprintf(message, MESSAGE_SIZE,
           "this process already has %s, so %s cannot be opened as well; "
           "use one libtorch folder in a process",
           loaded, wanted);
  return true;
}

/* Code of the failure, or NULL. `*abi` is 0 when the library does not tell. */
static const char* open_libtorch(const char* folder, unsigned long long* abi, char* message) {
  if (other_copy_in_process(folder, "libc10.so", message) ||
      other_copy_in_process(folder, "libtorch_cpu.so", message)) {
    return "ERR_NATIVE_LOAD";
  }
  prepare_environment();
  if (open_library(folder, "libc10.so", message) == NULL) return "ERR_NATIVE_LOAD";
  void* cpu = open_library(folder, "libtorch_cpu.so", message);
  if (cpu == NULL) return "ERR_NATIVE_LOAD";

  void* symbol = dlsym(cpu, "aoti_torch_abi_version");
  abi_version_function version = NULL;
  memcpy(&version, &symbol, sizeof version);
  *abi = version != NULL ? version() : 0;
  if (*abi == TORCH_ABI_VERSION) return NULL;
  snprintf(
      message, MESSAGE_SIZE,
      "%s/libtorch_cpu.so is libtorch %llu.%llu.%llu, but the addon was built for " TORCH_VERSION,
      folder, *abi >> 56, (*abi >> 48) & 0xff, (*abi >> 40) & 0xff);
  return "ERR_LIBTORCH_VERSION";
}

/* open(folder, withCuda) → { abi, cuda, cudaError? }
 * Throws ERR_NATIVE_LOAD (cannot be opened, or another copy is open) or ERR_LIBTORCH_VERSION.
 * A CUDA library that does not open is no error here: the caller knows whether it was a wish. */
static napi_value open_entry(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2];
  char folder[PATH_SIZE];
  bool with_cuda = false;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  if (count < 2 || !string_argument(env, arguments[0], folder) ||
      napi_get_value_bool(env, arguments[1], &with_cuda) != napi_ok) {
    return fail(env, "ERR_ARGUMENT", "open(folder, withCuda): expected a string and a boolean");
  }

  unsigned long long abi = 0;
  bool has_cuda = false;
  char message[MESSAGE_SIZE] = "";
  pthread_mutex_lock(&open_lock);
  const char* code = open_libtorch(folder, &abi, message);
  if (code == NULL && with_cuda) {
    has_cuda = open_library(folder, "libtorch_cuda.so", message) != NULL;
  }
  pthread_mutex_unlock(&open_lock);
  if (code != NULL) return fail(env, code, message);

  napi_value result, cuda;
  napi_create_object(env, &result);
  set_uint64(env, result, "abi", abi);
  napi_get_boolean(env, has_cuda, &cuda);
  napi_set_named_property(env, result, "cuda", cuda);
  if (with_cuda && !has_cuda) set_string(env, result, "cudaError", message);
  return result;
}

/* loaded() → the libtorch_cpu.so that is in this process, or null. */
static napi_value loaded_entry(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value result;
  char path[PATH_SIZE];
  if (library_in_process("libtorch_cpu.so", path)) {
    napi_create_string_utf8(env, path, NAPI_AUTO_LENGTH, &result);
  } else {
    napi_get_null(env, &result);
  }
  return result;
}

/* opens(name) → whether the dynamic linker can open a library, e.g. the CUDA driver's. */
static napi_value opens_entry(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument, result;
  char name[PATH_SIZE];
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  if (count < 1 || !string_argument(env, argument, name)) {
    return fail(env, "ERR_ARGUMENT", "opens(name): expected a string");
  }
  napi_get_boolean(env, dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL, &result);
  return result;
}

/* ---- swapping two folders ------------------------------------------------------------------- */

/* exchange(a, b) → null, or the name of the error (ENOSYS and EINVAL: this system or file system
 * cannot; the caller has another way). Both paths change places in one step, so a reader sees the
 * old folder or the new one, never none. */
static napi_value exchange_entry(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2], result;
  char first[PATH_SIZE], second[PATH_SIZE];
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  if (count < 2 || !string_argument(env, arguments[0], first) ||
      !string_argument(env, arguments[1], second)) {
    return fail(env, "ERR_ARGUMENT", "exchange(a, b): expected two paths");
  }
  /* The system call itself: glibc has a wrapper only since 2.28. */
  if (syscall(SYS_renameat2, AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) == 0) {
    napi_get_null(env, &result);
    return result;
  }
  const int number = errno;
  const char* name = "EIO";
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
    if (known[i].number == number) name = known[i].name;
  }
  napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &result);
  return result;
}

/* ---- module --------------------------------------------------------------------------------- */

NAPI_MODULE_INIT() {
  static const struct {
    const char* name;
    napi_callback function;
  } entries[] = {
      {"open", open_entry},
      {"loaded", loaded_entry},
      {"opens", opens_entry},
      {"exchange", exchange_entry},
  };
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    napi_value function;
    if (napi_create_function(env, entries[i].name, NAPI_AUTO_LENGTH, entries[i].function, NULL,
                             &function) != napi_ok ||
        napi_set_named_property(env, exports, entries[i].name, function) != napi_ok) {
      return fail(env, "ERR_NATIVE_LOAD", "the bootstrap could not define its functions");
    }
  }
  /* Built with the same headers as the addon: what the addon expects is known without libtorch. */
  set_string(env, exports, "expectedVersion", TORCH_VERSION);
  set_uint64(env, exports, "expectedAbi", TORCH_ABI_VERSION);
  return exports;
}
