#include "tests/fake_runtime.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

namespace litebnn::testing {
namespace {

// Not aligned_alloc, which wants a multiple of the alignment.
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

// From malloc, as ResizeTensor wants it.
TfLiteIntArray* MakeArray(const std::vector<int>& values) {
  auto* array = static_cast<TfLiteIntArray*>(std::malloc(sizeof(int) * (values.size() + 1)));
  array->size = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), array->data);
  return array;
}

// The runtime's own ADD, without broadcasting. What RELU makes of a NaN is left open by the runtime; here it is as in
// the delegate.
TfLiteStatus PrepareAdd(TfLiteContext* context, TfLiteNode* node) {
  if (node->inputs->size != 2 || node->outputs->size != 1) return kTfLiteError;
  const TfLiteTensor* tensors[3];
  const int indices[] = {node->inputs->data[0], node->inputs->data[1], node->outputs->data[0]};
  for (int i = 0; i < 3; ++i) {
    if (indices[i] < 0 || static_cast<size_t>(indices[i]) >= context->tensors_size) return kTfLiteError;
    tensors[i] = &context->tensors[indices[i]];
    if (tensors[i]->type != kTfLiteFloat32) return kTfLiteError;
  }
  const std::vector<int> first(tensors[0]->dims->data, tensors[0]->dims->data + tensors[0]->dims->size);
  const std::vector<int> second(tensors[1]->dims->data, tensors[1]->dims->data + tensors[1]->dims->size);
  if (first != second || tensors[2]->allocation_type != kTfLiteArenaRw) return kTfLiteError;
  return context->ResizeTensor(context, &context->tensors[indices[2]], MakeArray(first));
}

TfLiteStatus RunAdd(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& second = context->tensors[node->inputs->data[1]];
  const TfLiteTensor& sum = context->tensors[node->outputs->data[0]];
  const bool relu = *static_cast<const int*>(node->builtin_data) == 1;
  if (first.data == nullptr || second.data == nullptr || sum.data == nullptr) return kTfLiteError;
  if (first.bytes < sum.bytes || second.bytes < sum.bytes) return kTfLiteError;
  for (size_t i = 0; i < sum.bytes / sizeof(float); ++i) {
    const float value = static_cast<const float*>(first.data)[i] + static_cast<const float*>(second.data)[i];
    static_cast<float*>(sum.data)[i] = relu && !(value > 0) ? 0 : value;
  }
  return kTfLiteOk;
}

// Of one axis. 0 where the runtime's own kernel would refuse.
int PooledSize(int size, int filter, int stride, int padding) {
  if (filter < 1 || stride < 1 || size < 1) return 0;
  if (padding == kTfLitePaddingSame) return static_cast<int>((int64_t{size} + stride - 1) / stride);
  return padding == kTfLitePaddingValid && size >= filter ? (size - filter) / stride + 1 : 0;
}

// The runtime's own MAX_POOL_2D. What it makes of a NaN is left open by the runtime; here it is as in the delegate.
TfLiteStatus PreparePool(TfLiteContext* context, TfLiteNode* node) {
  if (node->inputs->size != 1 || node->outputs->size != 1) return kTfLiteError;
  for (int index : {node->inputs->data[0], node->outputs->data[0]}) {
    if (index < 0 || static_cast<size_t>(index) >= context->tensors_size) return kTfLiteError;
    if (context->tensors[index].type != kTfLiteFloat32) return kTfLiteError;
  }
  const TfLiteIntArray& shape = *context->tensors[node->inputs->data[0]].dims;
  TfLiteTensor* output = &context->tensors[node->outputs->data[0]];
  if (shape.size != 4 || output->allocation_type != kTfLiteArenaRw) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int height = PooledSize(shape.data[1], params.filter_height, params.stride_height, params.padding);
  const int width = PooledSize(shape.data[2], params.filter_width, params.stride_width, params.padding);
  if (height == 0 || width == 0 || params.activation < kTfLiteActNone || params.activation > kTfLiteActRelu) {
    return kTfLiteError;
  }
  return context->ResizeTensor(context, output, MakeArray({shape.data[0], height, width, shape.data[3]}));
}

TfLiteStatus RunPool(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  const TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  if (input.data == nullptr || output.data == nullptr) return kTfLiteError;
  const auto& params = *static_cast<const TfLitePoolParams*>(node->builtin_data);
  const int *in = input.dims->data, *out = output.dims->data;
  const auto pad = [](int64_t size, int64_t pooled, int64_t filter, int64_t stride) {
    return std::max<int64_t>((pooled - 1) * stride + filter - size, 0) / 2;
  };
  const bool same = params.padding == kTfLitePaddingSame;
  const int64_t top = same ? pad(in[1], out[1], params.filter_height, params.stride_height) : 0;
  const int64_t left = same ? pad(in[2], out[2], params.filter_width, params.stride_width) : 0;
  const auto* values = static_cast<const float*>(input.data);
  auto* result = static_cast<float*>(output.data);
  for (int64_t i = 0; i < int64_t{out[0]} * out[1] * out[2] * out[3]; ++i) {
    const int64_t channel = i % out[3], x = i / out[3] % out[2], y = i / out[3] / out[2] % out[1];
    const int64_t image = i / out[3] / out[2] / out[1];
    float largest = params.activation == kTfLiteActRelu ? 0.0f : -std::numeric_limits<float>::infinity();
    for (int64_t row = 0; row < in[1]; ++row) {
      const int64_t tap_y = row + top - y * params.stride_height;
      if (tap_y < 0 || tap_y >= params.filter_height) continue;
      for (int64_t column = 0; column < in[2]; ++column) {
        const int64_t tap_x = column + left - x * params.stride_width;
        if (tap_x < 0 || tap_x >= params.filter_width) continue;
        const float value = values[((image * in[1] + row) * in[2] + column) * in[3] + channel];
        if (value > largest) largest = value;
      }
    }
    result[i] = largest;
  }
  return kTfLiteOk;
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
  // Partitions are added; nodes stay where they are.
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

TfLiteRegistration* FakeRuntime::RegistrationOf(int node) {
  return reinterpret_cast<TfLiteRegistration*>(&nodes_[static_cast<size_t>(node)].registration);
}

void FakeRuntime::AddNode(const GraphNode& described) {
  // A copy of exactly that size: what is read beyond it shows.
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
  const bool adds = described.op == "ADD";
  if (adds || described.op == "MAX_POOL_2D") {
    registration->prepare = adds ? PrepareAdd : PreparePool;
    registration->invoke = adds ? RunAdd : RunPool;
    registration->builtin_code = adds ? kTfLiteBuiltinAdd : kTfLiteBuiltinMaxPool2d;
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
  std::vector<int> plan;
  std::vector<int> members;
  const auto close_partition = [&] {
    if (!members.empty()) plan.push_back(AddPartition(registration, members, delegate));
    members.clear();
  };
  for (int node : plan_) {
    const bool is_claimed = std::find(claimed.data, claimed.data + claimed.size, node) != claimed.data + claimed.size;
    if (!is_claimed || members.size() == partition_size_) close_partition();
    (is_claimed ? members : plan).push_back(node);
  }
  close_partition();
  plan_ = plan;
  return kTfLiteOk;
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
    for (size_t i = 0; i < tensor.bytes; ++i) {
      seed = seed * 1664525u + 1013904223u;
      bytes[i] = static_cast<uint8_t>(seed >> 24);
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
  // Which of the NaNs comes out of a sum is the instruction's choice; on 32-bit Arm, scalar and vector ones differ.
  const auto make_one_nan = [](uint8_t* bytes, size_t size) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (float value; size >= sizeof(value); bytes += sizeof(value), size -= sizeof(value)) {
      std::memcpy(&value, bytes, sizeof(value));
      if (std::isnan(value)) std::memcpy(bytes, &nan, sizeof(nan));
    }
  };
  std::vector<uint8_t> all;
  for (int output : graph_.outputs) {
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(output)];
    const auto* bytes = static_cast<const uint8_t*>(tensor.data);
    if (bytes == nullptr) continue;
    all.insert(all.end(), bytes, bytes + tensor.bytes);
    if (tensor.type == kTfLiteFloat32) make_one_nan(all.data() + all.size() - tensor.bytes, tensor.bytes);
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

std::vector<uint8_t> EncodeOptions(const std::map<std::string, int64_t>& options) {
  constexpr size_t kWidth = 8;
  std::vector<uint8_t> bytes;
  const auto append = [&bytes](uint64_t value) {
    for (size_t i = 0; i < kWidth; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  std::vector<size_t> keys;
  for (const auto& [key, value] : options) {
    keys.push_back(bytes.size());
    bytes.insert(bytes.end(), key.begin(), key.end());
    bytes.push_back(0);
  }
  append(options.size());
  const size_t key_vector = bytes.size();
  for (size_t key : keys) append(bytes.size() - key);
  append(bytes.size() - key_vector);
  append(kWidth);
  append(options.size());
  const size_t values = bytes.size();
  for (const auto& [key, value] : options) append(static_cast<uint64_t>(value));
  // Packed types: an integer of 8 bytes each; a map of values of 8 bytes for the root.
  bytes.insert(bytes.end(), options.size(), 1 << 2 | 3);
  append(bytes.size() - values);
  bytes.push_back(9 << 2 | 3);
  bytes.push_back(kWidth);
  return bytes;
}

}  // namespace litebnn::testing
