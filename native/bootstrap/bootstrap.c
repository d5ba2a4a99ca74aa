/* The first native code of the package: opens libtorch by absolute path before loading the addon
 * that is linked against it. It does not need libtorch itself, so it can report a missing or wrong
 * libtorch.
 *
 * The dynamic linker is not used to find libtorch, because package managers lay out folders in ways
 * that no relative RUNPATH covers, and the user may choose the folder. glibc resolves the addon's
 * "libtorch_cpu.so" to the library of that name that is already open.
 */
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torch/headeronly/version.h>

#include "system.h"

typedef unsigned long long (*abi_version_function)(void);

static napi_value fail(napi_env env, const char* code, const char* message) {
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (!pending) napi_throw_error(env, code, message);
  return NULL;
}

/* Copies a string argument; false and a pending TypeError if it is not a string or too long. */
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

/* ---- opening -------------------------------------------------------------------------------- */

/* Both variables are read once, when the libraries are opened. They are set in the C environment,
 * because `process.env` of a worker thread is a copy that native code does not see. */
static void prepare_environment(void) {
  /* Idle OpenMP threads spin for a while before they sleep. The default (300,000) makes a parallel
   * loop many times slower if another process uses the same cores. Mean time of a linear layer of
   * 480x128x128 on two cores: alone, 0.11 ms with 1,000 and with 300,000, 0.15 ms with 0; beside
   * busy processes, 0.5 ms with 1,000, 2 ms with 10,000, 8 ms with 300,000. */
  if (getenv("GOMP_SPINCOUNT") == NULL && getenv("OMP_WAIT_POLICY") == NULL) {
    system_set_default("GOMP_SPINCOUNT", "1000");
  }
  /* Huge pages for large buffers: a new 300 MB gradient causes a fifth of the page faults. */
  system_set_default("THP_MEM_ALLOC_ENABLE", "1");
}

/* A loaded library of this name from another folder would silently replace ours, so it is an error.
 * This checks the libraries of the process rather than a variable, which other copies of this
 * package, or other packages with their own libtorch, would not set. */
static bool other_copy_in_process(const char* folder, const char* name, char* message) {
  char loaded[PATH_SIZE];
  char wanted[PATH_SIZE + 64];
  char resolved[PATH_SIZE];
  if (!system_library_in_process(name, loaded)) return false;
  snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
  if (system_real_path(wanted, resolved) && strcmp(resolved, loaded) == 0) return false;
  snprintf(message, MESSAGE_SIZE,
           "this process already has %s, so %s cannot be opened as well; "
           "use only one libtorch folder per process",
           loaded, wanted);
  return true;
}

/* Returns the error code, or NULL. `*abi` is 0 if the library does not report it. */
static const char* open_libtorch(const char* folder, unsigned long long* abi, char* message) {
  if (other_copy_in_process(folder, system_c10, message) ||
      other_copy_in_process(folder, system_torch_cpu, message)) {
    return "ERR_NATIVE_LOAD";
  }
  prepare_environment();
  if (system_open_library(folder, system_c10, message) == NULL) return "ERR_NATIVE_LOAD";
  void* cpu = system_open_library(folder, system_torch_cpu, message);
  if (cpu == NULL) return "ERR_NATIVE_LOAD";

  void* symbol = system_find_symbol(cpu, "aoti_torch_abi_version");
  abi_version_function version = NULL;
  memcpy(&version, &symbol, sizeof version);
  *abi = version != NULL ? version() : 0;
  if (*abi == TORCH_ABI_VERSION) return NULL;
  snprintf(message, MESSAGE_SIZE,
           "%s/%s is libtorch %llu.%llu.%llu, but the addon was built for " TORCH_VERSION, folder,
           system_torch_cpu, *abi >> 56, (*abi >> 48) & 0xff, (*abi >> 40) & 0xff);
  return "ERR_LIBTORCH_VERSION";
}

/* open(folder, withCuda) → { abi, cuda, cudaError? }
 * Throws ERR_NATIVE_LOAD (cannot be opened, or another copy is open) or ERR_LIBTORCH_VERSION.
 * A CUDA library that does not open is not an error: the caller knows whether it is required. */
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
  system_lock();
  const char* code = open_libtorch(folder, &abi, message);
  if (code == NULL && with_cuda) {
    has_cuda = system_open_library(folder, system_torch_cuda, message) != NULL;
  }
  system_unlock();
  if (code != NULL) return fail(env, code, message);

  napi_value result, cuda;
  napi_create_object(env, &result);
  set_uint64(env, result, "abi", abi);
  napi_get_boolean(env, has_cuda, &cuda);
  napi_set_named_property(env, result, "cuda", cuda);
  if (with_cuda && !has_cuda) set_string(env, result, "cudaError", message);
  return result;
}

/* loaded() → the path of the CPU library of libtorch in this process, or null. */
static napi_value loaded_entry(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value result;
  char path[PATH_SIZE];
  if (system_library_in_process(system_torch_cpu, path)) {
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
  napi_get_boolean(env, system_can_open(name), &result);
  return result;
}

/* library(folder, name) → null, or why it does not open. It stays open. */
static napi_value library_entry(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2], result;
  char folder[PATH_SIZE], name[PATH_SIZE], message[MESSAGE_SIZE] = "";
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  if (count < 2 || !string_argument(env, arguments[0], folder) ||
      !string_argument(env, arguments[1], name)) {
    return fail(env, "ERR_ARGUMENT", "library(folder, name): expected two strings");
  }
  system_lock();
  const bool opened = system_open_library(folder, name, message) != NULL;
  system_unlock();
  if (opened) {
    napi_get_null(env, &result);
  } else {
    napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &result);
  }
  return result;
}

/* ---- swapping two folders ------------------------------------------------------------------- */

/* exchange(a, b) → null, or the name of the error (ENOSYS and EINVAL: not supported by this system
 * or file system; the caller has a fallback). The paths are swapped atomically, so that at any time
 * both exist. */
static napi_value exchange_entry(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2], result;
  char first[PATH_SIZE], second[PATH_SIZE];
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  if (count < 2 || !string_argument(env, arguments[0], first) ||
      !string_argument(env, arguments[1], second)) {
    return fail(env, "ERR_ARGUMENT", "exchange(a, b): expected two paths");
  }
  const char* fault = system_exchange(first, second);
  if (fault == NULL) {
    napi_get_null(env, &result);
  } else {
    napi_create_string_utf8(env, fault, NAPI_AUTO_LENGTH, &result);
  }
  return result;
}

/* ---- module --------------------------------------------------------------------------------- */

NAPI_MODULE_INIT() {
  static const struct {
    const char* name;
    napi_callback function;
  } entries[] = {
      {"open", open_entry},       {"loaded", loaded_entry},     {"opens", opens_entry},
      {"library", library_entry}, {"exchange", exchange_entry},
  };
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    napi_value function;
    if (napi_create_function(env, entries[i].name, NAPI_AUTO_LENGTH, entries[i].function, NULL,
                             &function) != napi_ok ||
        napi_set_named_property(env, exports, entries[i].name, function) != napi_ok) {
      return fail(env, "ERR_NATIVE_LOAD", "the bootstrap could not define its functions");
    }
  }
  /* Built with the same headers as the addon, so the expected version is known without libtorch. */
  set_string(env, exports, "expectedVersion", TORCH_VERSION);
  set_uint64(env, exports, "expectedAbi", TORCH_ABI_VERSION);
  return exports;
}
