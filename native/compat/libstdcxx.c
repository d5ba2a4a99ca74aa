/* Functions of libstdc++, by the names that C++ gives them; see glibc_floor.h. */
#include "glibc_floor.h"

#if GLIBC_FLOOR

/* GCC 12: std::condition_variable::wait(std::unique_lock<std::mutex>&) got noexcept, and with it a
 * version of its own. */
OLD_VERSION("GLIBCXX_3.4.11", void, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,
            (void* self, void* lock)) {
  old__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(self, lock);
}

#else
typedef int not_empty;
#endif
