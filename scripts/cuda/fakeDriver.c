/*
 * A fake libcuda.so.1, to test a driver that is too old, has no GPU, or does not start.
 * FAKE_DRIVER_VERSION is the version it reports (13000 for CUDA 13.0), FAKE_DRIVER_START the result of
 * cuInit (100: no device). It can do nothing else.
 */
#include <stdlib.h>
#include <string.h>

static int setting(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? 0 : atoi(value);
}

int cuInit(unsigned flags) {
  (void)flags;
  return setting("FAKE_DRIVER_START");
}

int cuDriverGetVersion(int* version) {
  *version = setting("FAKE_DRIVER_VERSION");
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long flags,
                        int* status) {
  const int not_found = 500;
  (void)version;
  (void)flags;
  *function = NULL;
  if (strcmp(name, "cuInit") == 0) *function = (void*)cuInit;
  if (strcmp(name, "cuDriverGetVersion") == 0) *function = (void*)cuDriverGetVersion;
  if (strcmp(name, "cuGetProcAddress") == 0) *function = (void*)cuGetProcAddress_v2;
  if (status != NULL) *status = *function == NULL;
  return *function == NULL ? not_found : 0;
}
