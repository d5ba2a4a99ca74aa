/* Keeps our libraries loadable wherever libtorch itself is: on glibc 2.28 with the libstdc++ of GCC
 * 7, and later.
 *
 * A plain build on a newer system asks for the newest version of each function that its libraries
 * have, though the old one would do, and so would not load on the systems before. OLD_VERSION
 * defines a hidden function of the same name that calls an old version, which newer systems have as
 * well. The files beside this one have those functions that our code uses and that were renewed
 * since; `scripts/checkBinary.cjs` tells when another one is needed.
 */
#ifndef TORCHFORMER_COMPAT_GLIBC_FLOOR_H
#define TORCHFORMER_COMPAT_GLIBC_FLOOR_H

#if defined(__linux__)
#include <features.h>
#endif

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define GLIBC_FLOOR 1
#else
#define GLIBC_FLOOR 0
#endif

/* What the first glibc for each processor family had. */
#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#endif

/* Begins a function; inside, old_<name> is <name> of the given version. */
#define OLD_VERSION(version, result, name, parameters)          \
  __asm__(".symver old_" #name "," #name "@" version);          \
  extern result old_##name parameters;                          \
  __attribute__((visibility("hidden"))) result name parameters; \
  __attribute__((visibility("hidden"))) result name parameters

#endif
