// The interface of an op. It is the same for a custom op and for a node in a delegate's partition.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>

#include "kernels/kernels.h"
#include "kernels/platform/thread_pool.h"
#include "tflite/ops/options.h"
#include "tflite/runtime/node.h"

namespace litebnn {

class Op {
 public:
  virtual ~Op() = default;

  // Validates the node, sets the shape of its output and prepares to run. Returns false after reporting an error. The
  // function is called again after an input is resized; constants and options do not change. The caller has checked the
  // number of inputs and outputs, and that the size of every tensor fits in size_t (TensorBytes is not 0).
  virtual bool Prepare(const Node& node) = 0;

  // The bytes of scratch memory for Run, aligned to 64.
  virtual size_t WorkspaceBytes(int /*num_threads*/) const { return 0; }
  // The position of the input whose memory the output may use, because Run reads each value of this input before it
  // overwrites it.
  virtual std::optional<size_t> OverwritableInput() const { return std::nullopt; }
  // The number of bytes of memory that the op owns, such as repacked weights. Data of the model file is not counted.
  virtual size_t OwnedBytes() const { return 0; }

  // Run can be split into this number of slices, which may run in any order. The number is 0 if Run needs all inputs
  // together. The node's inputs begin with those of slice 0: its image, then its constants. The inputs of the other
  // slices follow, then those that all slices share. A slice may run as soon as its image is written, while the image
  // is still in the caches.
  virtual size_t SliceCount() const { return 0; }
  virtual size_t InputsPerSlice() const { return 1; }

  // Runs slice `slice` of the node; an op without slices has only slice 0. `inputs` and `outputs` are in the node's
  // order, and a tensor that is left out is null. The function reads only the slice's own inputs and those that all
  // slices share. It allocates nothing.
  virtual void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace,
                   size_t slice) const = 0;
};

// The role of a builtin op in a chain of ops at whose end signs are packed. An op with the role kPasses is claimed if
// its output leads to nothing but signs. An op with the role kBegins is claimed even if its output has other consumers
// too.
enum class SignFeed { kNone, kPasses, kBegins };

struct OpType {
  const char* name;  // a custom op's name in the model; for builtin ops a name for messages
  size_t min_inputs, max_inputs;
  const char* input_names[kMaxInputNames];        // in the format of InputName
  std::unique_ptr<Op> (*create)(const Isa& isa);  // returns null if memory ran out

  // The following members are for builtin ops. The delegate claims a node if `computes` returns true for it, and if a
  // node that is already claimed writes one of its inputs. The function `follows` must accept the op of that claimed
  // node; null accepts any op. The members `sign_feed` and `stands_alone` are other reasons to claim a node for
  // which `computes` returns true.
  int32_t builtin_code = kTfLiteBuiltinCustom;
  bool (*computes)(const TfLiteContext& context, const TfLiteNode& node) = nullptr;
  bool (*follows)(const OpType& writer) = nullptr;
  SignFeed sign_feed = SignFeed::kNone;
  // If true, a node is claimed only if a claimed node reads its output. Otherwise the runtime is as fast.
  bool needs_reader = false;
  // If true, no other node may read the output of the claimed node before this one. Otherwise the two nodes are not
  // fused, and the runtime is faster.
  bool is_sole_reader = false;
  bool has_options = true;    // false if the nodes of this builtin op have no builtin_data
  bool stands_alone = false;  // the node is claimed whatever it reads

  bool IsCustom() const { return builtin_code == kTfLiteBuiltinCustom; }
};

// Reads the options of a custom op's node to a structure of options.h. Returns false after reporting an error.
template <typename Options>
bool ReadOptions(const Node& node, Options* options) {
  OptionReader reader(node.options, node.options_size);
  return ReadOptions(&reader, options) || node.Error("%s", reader.problem());
}

template <typename T>
std::unique_ptr<Op> CreateOp(const Isa& isa) {
  return std::unique_ptr<Op>(new (std::nothrow) T(isa));
}

}  // namespace litebnn
