// The limits above which threads share a loop. Tests link other values, with which threads share every loop that can be
// split.
#include "kernels/platform/thread_pool.h"

namespace litebnn {

const SharingLimits kSharingLimits = {
    .least_loop = 16e3, .least_loop_to_wake = 60e3, .least_chunk = 4e3, .backoff_factor = 120};

}  // namespace litebnn
