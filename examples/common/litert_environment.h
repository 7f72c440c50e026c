// LiteRT's environment, with accelerators for the delegates of a session.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "common/delegates.h"
#include "common/litert_api.h"

namespace litebnn::examples {

template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, void (*)(Pointer)>;

// Throws Error unless the status means success.
void Check(LiteRtStatus status, const char* what);

// An environment whose models are passed to each delegate in turn, and then to XNNPACK if `xnnpack` is true. LiteRT
// passes no user data to accelerators, so only one environment may exist at a time. The delegates must outlive it.
// Throws Error.
Owned<LiteRtEnvironment> MakeEnvironment(const std::vector<Delegate>& delegates, bool xnnpack);

}  // namespace litebnn::examples
