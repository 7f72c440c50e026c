// LiteRT's environment, with accelerators for the delegates that a session uses.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "common/delegates.h"
#include "common/litert_api.h"

namespace litebnn::examples {

template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, void (*)(Pointer)>;

// Throws Error unless the status is that of success.
void Check(LiteRtStatus status, const char* what);

// An environment whose models are handed to each delegate in turn, and then to XNNPACK where that is wanted. LiteRT
// passes no user data to accelerators, so at most one environment may exist at a time. It does not own the delegates,
// which must outlive it. Throws Error.
Owned<LiteRtEnvironment> MakeEnvironment(const std::vector<Delegate>& delegates, bool xnnpack);

}  // namespace litebnn::examples
