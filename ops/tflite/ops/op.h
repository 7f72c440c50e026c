// The interface of an op, the same for a node of its own and for a node inside a delegate's partition.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>

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

  // How many parts it is run in, in any order, and how many inputs each has: its image first, and then constants of its
  // own. All parts read what is behind these. A part may run as soon as its image is written, which is in the caches
  // then. There are no parts where all inputs are read together.
  virtual size_t PartCount() const { return 0; }
  virtual size_t InputsPerPart() const { return 1; }

  // Allocates nothing. `inputs` and `outputs` are in the node's order, null where one is left out; those of other
  // parts are not read. `part` is 0 where there are none.
  virtual void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void* workspace,
                   size_t part) const = 0;
};

// What an op is on the way to packed signs: it passes values on, and is taken where nothing but signs is made of them;
// or the way begins with it, whatever else reads what it writes.
enum class SignFeed { kNone, kPasses, kBegins };

struct OpType {
  const char* name;  // the name that a custom op has in a model; the others' is for messages
  size_t min_inputs, max_inputs;
  const char* input_names[kMaxInputNames];        // as InputName takes them
  std::unique_ptr<Op> (*create)(const Isa& isa);  // null where memory ran out

  // What follows is for the runtime's own ops. The delegate takes a node of one where `computes` holds, and it reads
  // what the delegate has already taken: the output of a node that it `follows`, or of any where that is null. One that
  // feeds signs is also taken for these. One that wants a reader is left where nothing that is taken reads it: alone it
  // takes as long in the runtime.
  int32_t builtin_code = kTfLiteBuiltinCustom;
  bool (*computes)(const TfLiteContext& context, const TfLiteNode& node) = nullptr;
  bool (*follows)(const OpType& writer) = nullptr;
  SignFeed sign_feed = SignFeed::kNone;
  bool wants_reader = false;
  bool has_options = true;  // of builtin ops: whether their nodes have builtin_data

  bool IsCustom() const { return builtin_code == kTfLiteBuiltinCustom; }
};

template <typename T>
std::unique_ptr<Op> CreateOp(const Isa& isa) {
  return std::unique_ptr<Op>(new (std::nothrow) T(isa));
}

}  // namespace litebnn
