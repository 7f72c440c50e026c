// This file replaces kernels/platform/sharing_limits.cc, so that threads share even the small layers of tests.
#include "kernels/platform/thread_pool.h"

namespace litebnn {

const SharingLimits kSharingLimits = {};

}  // namespace litebnn
