/* Functions of glibc's libm; see glibc_floor.h. */
#include "glibc_floor.h"

#if GLIBC_FLOOR

/* 2.29: the new ones differ in how they tell errors, not in their results. */
OLD_VERSION(FIRST_GLIBC, double, exp, (double x)) { return old_exp(x); }
OLD_VERSION(FIRST_GLIBC, double, log, (double x)) { return old_log(x); }
OLD_VERSION(FIRST_GLIBC, double, pow, (double x, double y)) { return old_pow(x, y); }

#else
typedef int not_empty;
#endif
