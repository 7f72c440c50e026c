#include "tests/support/fake_runtime.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>

#include "tests/support/fake_builtins.h"
#include "tests/support/groups.h"

namespace litebnn::testing {
namespace {

template <typename Function>
void ReplaceFloats(uint8_t* bytes, size_t size, Function function) {
  for (float value; size >= sizeof(value); bytes += sizeof(value), size -= sizeof(value)) {
    std::memcpy(&value, bytes, sizeof(value));
    value = function(value);
    std::memcpy(bytes, &value, sizeof(value));
  }
}

// Allocates a block of exactly `bytes` bytes. In contrast to aligned_alloc, the size need not be a multiple of the
// alignment.
void* AllocateExactly(size_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}

size_t TypeBytes(TfLiteType type) {
  switch (type) {
    case kTfLiteFloat32:
    case kTfLiteInt32:
      return 4;
    case kTfLiteInt64:
      return 8;
    default:
      return 1;
  }
}

bool TensorBytes(TfLiteType type, const TfLiteIntArray& dims, size_t* bytes) {
  *bytes = TypeBytes(type);
  for (int i = 0; i < dims.size; ++i) {
    if (dims.data[i] < 0 || __builtin_mul_overflow(*bytes, static_cast<size_t>(dims.data[i]), bytes)) return false;
  }
  return true;
}

TfLiteStatus Forbidden(TfLiteContext* context) {
  context->ReportError(context, "The function is forbidden if not calling in delegate.");
  return kTfLiteError;
}

}  // namespace

void FakeRuntime::FreeBlock::operator()(void* block) const { std::free(block); }

FakeRuntime::FakeRuntime(const Graph& graph, int num_threads) : FakeRuntime(graph, nullptr, 0, num_threads) {}

FakeRuntime::FakeRuntime(const Graph& graph, ::TfLiteDelegate* delegate, size_t partition_size, int num_threads)
    : graph_(graph), tensors_(graph.tensors.size()), blocks_(graph.tensors.size()), partition_size_(partition_size) {
  context_.tensors_size = tensors_.size();
  context_.tensors = tensors_.data();
  context_.impl_ = this;
  context_.recommended_num_threads = num_threads;
  context_.ReportError = ReportError;
  context_.ResizeTensor = [](TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* size) {
    FakeRuntime* self = Of(context);
    self->arrays_.emplace_back(size, std::free);
    if (tensor->allocation_type != kTfLiteArenaRw) {
      context->ReportError(context, "Attempting to resize a fixed-size tensor.");
      return kTfLiteError;
    }
    size_t bytes;
    if (!TensorBytes(tensor->type, *size, &bytes) || bytes > kMaxBytes) {
      context->ReportError(context, "Too many bytes.");
      return kTfLiteError;
    }
    tensor->dims = size;
    tensor->bytes = bytes;
    return kTfLiteOk;
  };
  AllowDelegateCalls(false);

  for (size_t i = 0; i < tensors_.size(); ++i) {
    const GraphTensor& described = graph_.tensors[i];
    TfLiteTensor& tensor = tensors_[i];
    tensor = {};
    tensor.type = described.type;
    tensor.dims = NewArray(described.shape);
    tensor.params = described.quantization;
    if (!described.grids.scales.empty() || !described.grids.zero_points.empty()) {
      tensor.quantization = {kTfLiteAffineQuantization, NewQuantization(described.grids)};
    }
    tensor.name = "a tensor";
    tensor.allocation_type = kTfLiteArenaRw;
    if (!described.constant.empty()) {
      tensor.allocation_type = kTfLiteMmapRo;
      const size_t shift = described.misaligned ? 1 : 0;
      blocks_[i].reset(AllocateExactly(described.constant.size() + shift));
      tensor.data = static_cast<char*>(blocks_[i].get()) + shift;
      tensor.bytes = described.constant.size();
      std::memcpy(tensor.data, described.constant.data(), described.constant.size());
    }
  }
  // The vector reserves memory for all nodes, so that nodes do not move when the delegate's partitions are added.
  nodes_.reserve(2 * graph_.nodes.size() + 1);
  for (const GraphNode& node : graph_.nodes) AddNode(node);
  AddNodeOfOthers();
  if (delegate != nullptr) Delegate(delegate);
}

FakeRuntime::~FakeRuntime() {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const auto free = RegistrationOf(i)->free;
    if (free != nullptr) free(&context_, nodes_[static_cast<size_t>(i)].node.user_data);
  }
}

TfLiteIntArray* FakeRuntime::NewArray(const std::vector<int>& values) {
  arrays_.emplace_back(MakeArray(values), std::free);
  return arrays_.back().get();
}

TfLiteAffineQuantization* FakeRuntime::NewQuantization(const GridArrays& grids) {
  auto affine = std::make_unique<TfLiteAffineQuantization>();
  if (!grids.scales.empty()) {
    float_arrays_.emplace_back(MakeFloatArray(grids.scales), std::free);
    affine->scale = float_arrays_.back().get();
  }
  if (!grids.zero_points.empty()) affine->zero_point = NewArray(grids.zero_points);
  affine->quantized_dimension = grids.dimension;
  quantizations_.push_back(std::move(affine));
  return quantizations_.back().get();
}

TfLiteRegistration* FakeRuntime::RegistrationOf(int node) {
  return reinterpret_cast<TfLiteRegistration*>(&nodes_[static_cast<size_t>(node)].registration);
}

void FakeRuntime::AddNode(const GraphNode& described) {
  // The options are copied into a block of exactly their size, so that a sanitizer detects reads past the end.
  options_.emplace_back(described.options.begin(), described.options.end());
  const std::vector<char>& options = options_.back();
  RuntimeNode added = {};
  added.node.inputs = NewArray(described.inputs);
  added.node.outputs = NewArray(described.outputs);
  added.node.custom_initial_data = options.data();
  added.node.custom_initial_data_size = static_cast<int>(options.size());
  const int index = static_cast<int>(nodes_.size());
  nodes_.push_back(added);
  plan_.push_back(index);

  TfLiteRegistration* registration = RegistrationOf(index);
  if (FindFakeBuiltin(described.op, registration)) {
    nodes_.back().node.builtin_data = const_cast<int*>(described.builtin.data());
    return;
  }
  registration->builtin_code = kTfLiteBuiltinCustom;
  registration->custom_name = described.op.c_str();
  if (partition_size_ == 0) {
    std::memcpy(registration, litebnn_registration(described.op.c_str()), sizeof(added.registration));
    nodes_.back().node.user_data = registration->init(&context_, options.data(), options.size());
  }
}

void FakeRuntime::AddNodeOfOthers() {
  RuntimeNode added = {};
  added.node.inputs = NewArray({});
  added.node.outputs = NewArray({});
  plan_.push_back(static_cast<int>(nodes_.size()));
  nodes_.push_back(added);
  TfLiteRegistration* registration = RegistrationOf(plan_.back());
  registration->prepare = registration->invoke = [](TfLiteContext*, TfLiteNode*) { return kTfLiteOk; };
  registration->custom_name = "Other";
}

void FakeRuntime::AllowDelegateCalls(bool allowed) {
  if (!allowed) {
    context_.GetExecutionPlan = [](TfLiteContext* context, TfLiteIntArray**) { return Forbidden(context); };
    context_.GetNodeAndRegistration = [](TfLiteContext* context, int, TfLiteNode**, TfLiteRegistration**) {
      return Forbidden(context);
    };
    context_.ReplaceNodeSubsetsWithDelegateKernels = [](TfLiteContext* context, TfLiteRegistrationArgument,
                                                        const TfLiteIntArray*,
                                                        litebnn::TfLiteDelegate*) { return Forbidden(context); };
    return;
  }
  context_.GetExecutionPlan = [](TfLiteContext* context, TfLiteIntArray** plan) {
    *plan = Of(context)->NewArray(Of(context)->plan_);
    return kTfLiteOk;
  };
  context_.GetNodeAndRegistration = [](TfLiteContext* context, int index, TfLiteNode** node,
                                       TfLiteRegistration** registration) {
    *node = &Of(context)->nodes_[static_cast<size_t>(index)].node;
    *registration = Of(context)->RegistrationOf(index);
    return kTfLiteOk;
  };
  context_.ReplaceNodeSubsetsWithDelegateKernels = [](TfLiteContext* context, TfLiteRegistrationArgument argument,
                                                      const TfLiteIntArray* nodes, litebnn::TfLiteDelegate* delegate) {
    TfLiteRegistration registration = {};
    std::memcpy(&registration, &argument, sizeof(argument));
    return Of(context)->ReplaceNodes(registration, *nodes, delegate);
  };
}

void FakeRuntime::Delegate(::TfLiteDelegate* public_delegate) {
  auto* delegate = reinterpret_cast<litebnn::TfLiteDelegate*>(public_delegate);
  AllowDelegateCalls(true);
  if (delegate->Prepare(&context_, delegate) != kTfLiteOk) broken_ = true;
  AllowDelegateCalls(false);
}

TfLiteStatus FakeRuntime::ReplaceNodes(const TfLiteRegistration& registration, const TfLiteIntArray& claimed,
                                       litebnn::TfLiteDelegate* delegate) {
  const auto is_claimed = [&](int node) {
    return std::find(claimed.data, claimed.data + claimed.size, node) != claimed.data + claimed.size ||
           (static_cast<size_t>(node) < graph_.nodes.size() && graph_.nodes[static_cast<size_t>(node)].unclaimed);
  };
  std::vector<GroupedNode> nodes;
  for (int node : plan_) {
    const TfLiteNode& described = nodes_[static_cast<size_t>(node)].node;
    nodes.push_back({TensorsOf(*described.inputs), TensorsOf(*described.outputs), is_claimed(node)});
  }
  std::vector<int> plan;
  for (const std::vector<size_t>& group : GroupNodes(nodes)) {
    std::vector<int> members;
    for (const size_t place : group) members.push_back(plan_[place]);
    if (!nodes[group[0]].is_claimed) {
      plan.insert(plan.end(), members.begin(), members.end());
      continue;
    }
    for (size_t begin = 0; begin < members.size(); begin += partition_size_) {
      const auto first = members.begin() + static_cast<ptrdiff_t>(begin);
      const auto count = static_cast<ptrdiff_t>(std::min(partition_size_, members.size() - begin));
      plan.push_back(AddPartition(registration, {first, first + count}, delegate));
    }
  }
  plan_ = plan;
  return kTfLiteOk;
}

std::vector<int> FakeRuntime::TensorsOf(const TfLiteIntArray& indices) const {
  std::vector<int> tensors;
  tensors.reserve(static_cast<size_t>(indices.size));
  std::copy_if(indices.data, indices.data + indices.size, std::back_inserter(tensors),
               [this](int index) { return static_cast<size_t>(index) < tensors_.size(); });
  return tensors;
}

int FakeRuntime::AddPartition(const TfLiteRegistration& registration, const std::vector<int>& members,
                              litebnn::TfLiteDelegate* delegate) {
  std::set<int> read, written, read_elsewhere(graph_.outputs.begin(), graph_.outputs.end());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const bool member = std::find(members.begin(), members.end(), static_cast<int>(i)) != members.end();
    for (int tensor : graph_.nodes[i].inputs) (member ? read : read_elsewhere).insert(tensor);
    for (int tensor : graph_.nodes[i].outputs) {
      if (member) written.insert(tensor);
    }
  }
  std::vector<int> inputs, outputs;
  for (int tensor : read) {
    if (written.count(tensor) == 0) inputs.push_back(tensor);
  }
  for (int tensor : written) {
    if (read_elsewhere.count(tensor) != 0) outputs.push_back(tensor);
  }
  TfLiteDelegateParams params = {delegate, NewArray(members), NewArray(inputs), NewArray(outputs)};
  RuntimeNode added = {};
  added.node.inputs = params.input_tensors;
  added.node.outputs = params.output_tensors;
  added.node.delegate = delegate;
  added.node.user_data = registration.init(&context_, reinterpret_cast<const char*>(&params), 0);
  std::memcpy(&added.registration, &registration, sizeof(added.registration));
  nodes_.push_back(added);
  return static_cast<int>(nodes_.size()) - 1;
}

void FakeRuntime::ReportError(TfLiteContext* context, const char* message, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, message);
  std::vsnprintf(text, sizeof(text), message, arguments);
  va_end(arguments);
  Of(context)->errors_ += text;
}

bool FakeRuntime::Resize(int tensor, const std::vector<int>& shape) {
  return context_.ResizeTensor(&context_, &tensors_[static_cast<size_t>(tensor)], MakeArray(shape)) == kTfLiteOk;
}

size_t FakeRuntime::tensor_bytes() const {
  size_t total = 0;
  for (const TfLiteTensor& tensor : tensors_) total += tensor.bytes;
  return total;
}

bool FakeRuntime::Allocate() {
  if (broken_) return false;
  for (int input : graph_.inputs) {
    TfLiteTensor& tensor = tensors_[static_cast<size_t>(input)];
    size_t bytes;
    if (tensor.allocation_type != kTfLiteArenaRw) continue;
    if (!TensorBytes(tensor.type, *tensor.dims, &bytes) || bytes > kMaxBytes) {
      context_.ReportError(&context_, "Too many bytes.");
      return false;
    }
    tensor.bytes = bytes;
  }
  for (int index : plan_) {
    const TfLiteRegistration& registration = *RegistrationOf(index);
    if (registration.prepare(&context_, &nodes_[static_cast<size_t>(index)].node) != kTfLiteOk) {
      context_.ReportError(&context_, "Node number %d (%s) failed to prepare.\n", index, registration.custom_name);
      return false;
    }
  }
  if (tensor_bytes() > kMaxBytes) {
    context_.ReportError(&context_, "Too many bytes.");
    return false;
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].allocation_type != kTfLiteArenaRw || tensors_[i].bytes == 0) continue;
    blocks_[i].reset(AllocateExactly(tensors_[i].bytes));
    tensors_[i].data = blocks_[i].get();
    std::memset(tensors_[i].data, 0, tensors_[i].bytes);
  }
  return true;
}

void FakeRuntime::FillInputs(uint32_t seed) {
  for (int input : graph_.inputs) {
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(input)];
    if (tensor.data == nullptr || tensor.allocation_type != kTfLiteArenaRw) continue;
    auto* bytes = static_cast<uint8_t*>(tensor.data);
    // The random values of each input depend only on the seed and the input's index. They must not depend on the other
    // tensors, which differ if the graph runs through a delegate.
    uint32_t state = seed + static_cast<uint32_t>(input);
    for (size_t i = 0; i < tensor.bytes; ++i) {
      state = state * 1664525u + 1013904223u;
      bytes[i] = static_cast<uint8_t>(state >> 24);
    }
    // The random values include no subnormal numbers, because 32-bit Arm flushes them to zero in vectors but not in
    // scalars.
    constexpr float kLeast = 1e-30f;
    if (tensor.type == kTfLiteFloat32) {
      ReplaceFloats(bytes, tensor.bytes, [](float value) { return std::abs(value) < kLeast ? 0.0f : value; });
    }
  }
}

bool FakeRuntime::Invoke() {
  for (int index : plan_) {
    const TfLiteRegistration& registration = *RegistrationOf(index);
    if (registration.invoke(&context_, &nodes_[static_cast<size_t>(index)].node) != kTfLiteOk) {
      context_.ReportError(&context_, "Node number %d (%s) failed to invoke.\n", index, registration.custom_name);
      return false;
    }
  }
  return true;
}

std::vector<uint8_t> FakeRuntime::Outputs() const {
  // Replaces every NaN by the same NaN, because the bits of a NaN depend on the instruction that makes it.
  const auto one_nan = [](float value) { return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value; };
  std::vector<uint8_t> all;
  for (int output : graph_.outputs) {
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(output)];
    const auto* bytes = static_cast<const uint8_t*>(tensor.data);
    if (bytes == nullptr) continue;
    all.insert(all.end(), bytes, bytes + tensor.bytes);
    if (tensor.type == kTfLiteFloat32) {
      ReplaceFloats(all.data() + all.size() - tensor.bytes, tensor.bytes, one_nan);
    }
  }
  return all;
}

uint64_t FakeRuntime::OutputHash() const {
  uint64_t hash = 0;
  for (int output : graph_.outputs) {
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(output)];
    for (size_t i = 0; i < tensor.bytes; ++i) hash = hash * 31 + static_cast<const uint8_t*>(tensor.data)[i];
  }
  return hash;
}

}  // namespace litebnn::testing
