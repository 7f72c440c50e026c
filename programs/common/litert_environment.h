// A LiteRT environment, with an accelerator for each delegate of a session.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "common/delegates.h"
#include "common/litert_api.h"

namespace litebnn::programs {

template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, void (*)(Pointer)>;

// Throws Error unless the status means success.
void Check(LiteRtStatus status, const char* what);

// Makes an environment that passes models to each delegate in turn, and then to XNNPACK if `xnnpack` is true. Only one
// environment may exist at a time, because LiteRT passes no user data to accelerators. The delegates must outlive the
// environment. Throws Error.
Owned<LiteRtEnvironment> MakeEnvironment(const std::vector<Delegate>& delegates, bool xnnpack);

}  // namespace litebnn::programs
