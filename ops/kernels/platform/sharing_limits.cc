// When threads share a loop. Tests are linked with limits of their own, which share all that can be split.
#include "kernels/platform/thread_pool.h"

namespace litebnn {

const SharingLimits kSharingLimits = {.least_loop = 16e3, .least_loop_to_wake = 60e3, .least_part = 4e3, .rests = 120};

}  // namespace litebnn
