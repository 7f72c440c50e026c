// Takes the place of kernels/platform/sharing_limits.cc, so that the small layers of tests are shared by threads too.
#include "kernels/platform/thread_pool.h"

namespace litebnn {

const SharingLimits kSharingLimits = {};

}  // namespace litebnn
