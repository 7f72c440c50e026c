// The interface of an op, the same for a node of its own and for a node inside a delegate's partition.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kernels/kernels.h"
#include "kernels/platform/thread_pool.h"
#include "tflite/runtime/node.h"

namespace litebnn {

class Op {
 public:
  virtual ~Op() = default;

  // Validates the node, sets the shape of its output and gets ready to run. False after an error has been reported.
  // Called again whenever an input has been resized; constants and options are the same then.
  // The caller has checked the number of inputs and outputs, and that every shape fits (TensorBytes is not 0).
  virtual bool Prepare(const Node& node) = 0;

  // Scratch that Run needs, aligned to 64 bytes.
  virtual size_t WorkspaceBytes(int /*num_threads*/) const { return 0; }
  // The input whose memory its output may take, if any: it reads each value before it writes the one in its place.
  virtual std::optional<size_t> OverwritableInput() const { return std::nullopt; }
  // Bytes held beyond the model's own, such as repacked weights.
  virtual size_t OwnedBytes() const { return 0; }

  // Allocates nothing. `inputs` and `outputs` are in the node's order, null where one is left out.
  virtual void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace) const = 0;
};

struct OpType {
  static constexpr size_t kMaxInputs = 6;

  const char* name;  // of the custom operator
  size_t min_inputs, max_inputs;
  const char* input_names[kMaxInputs];
  std::unique_ptr<Op> (*create)(const Isa& isa);  // null where memory ran out
};

extern const OpType kQuantizeOp;
extern const OpType kDequantizeOp;
extern const OpType kBMaxPool2dOp;
extern const OpType kBconv2dOp;
// The runtime's own.
extern const OpType kMaxPool2dOp;
// The runtime's own ADD, without activation and with RELU, and the convolution with the addition of its last input to
// it; the latter are made by Partition and in no model.
extern const OpType kAddOp;
extern const OpType kAddReluOp;
extern const OpType kBconv2dAddOp;
extern const OpType kBconv2dAddReluOp;

// The ISA to run where none is asked for. Null, and the reason in `*problem`, where the environment variable
// LITEBNN_ISA names none that this CPU can run.
const Isa* DefaultIsa(std::string* problem);

// The op that a node calls for, null where litebnn has none.
const OpType* FindOpType(const TfLiteRegistration& registration);

}  // namespace litebnn
