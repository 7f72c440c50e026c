// Registers litebnn's ops with an environment of LiteRT's C++ API, for its CompiledModel.
#pragma once

#include "litebnn/litebnn.h"

namespace litebnn {

/** Registers the delegate as an accelerator of `environment`, a litert::Environment or anything with its GetHolder().
 * Returns false, after one line on stderr, if that failed::
 *
 *   auto environment = litert::Environment::Create(options);  // without the CPU, see docs/compiled-model.md
 *   litebnn::RegisterAccelerator(*environment);
 *   auto model = litert::CompiledModel::Create(*environment, "model.tflite", litert::HwAccelerators::kCpu);
 */
template <class Environment>
bool RegisterAccelerator(const Environment& environment) {
  return litebnn_register_accelerator(environment.GetHolder().handle) == 0;
}

}  // namespace litebnn
