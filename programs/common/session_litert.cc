// Sessions that run models on LiteRT, with its compiled models, accelerators and profiler.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "common/delegates.h"
#include "common/error.h"
#include "common/litert_api.h"
#include "common/litert_environment.h"
#include "common/session.h"
#include "litert_version.h"

namespace litebnn::programs {
namespace {

// The number of events after which the session reads them. The profiler keeps 2^19 events and then overwrites the
// oldest ones.
constexpr int kManyEvents = 1 << 17;

void AddOptions(LiteRtOptions options, const char* identifier, const std::string& toml) {
  LiteRtOpaqueOptions opaque = nullptr;
  Check(LiteRtCreateOpaqueOptions(identifier, strdup(toml.c_str()), std::free, &opaque), "take options");
  Check(LiteRtAddOpaqueOptions(options, opaque), "take options");
}

enum class Reporter { kStderr = 1, kBuffer = 2 };

LiteRtStatus Compile(LiteRtEnvironment environment, LiteRtModel model, const SessionOptions& session, Reporter reporter,
                     LiteRtCompiledModel* compiled) {
  LiteRtOptions made = nullptr;
  Check(LiteRtCreateOptions(&made), "make options");
  const Owned<LiteRtOptions> options(made, LiteRtDestroyOptions);
  Check(LiteRtSetOptionsHardwareAccelerators(made, kLiteRtHwAcceleratorCpu), "set the hardware");
  AddOptions(made, "cpu_delegate", Format("num_threads = %d\n", session.num_threads));
  AddOptions(made, "runtime_options_string",
             Format("enable_profiling = %s\nerror_reporter_mode = %d\n", session.profiling ? "true" : "false",
                    static_cast<int>(reporter)));
  return LiteRtCreateCompiledModel(environment, model, made, compiled);
}

std::string NameOf(LiteRtTensor tensor) {
  const char* name = nullptr;
  return LiteRtGetTensorName(tensor, &name) == kLiteRtStatusOk && name != nullptr ? name : "";
}

size_t IndexOf(LiteRtTensor tensor) {
  uint32_t index = 0;
  Check(LiteRtGetTensorIndex(tensor, &index), "tell a tensor's index");
  return index;
}

class LiteRtSession final : public Session {
 public:
  explicit LiteRtSession(const SessionOptions& options);
  std::vector<Tensor> inputs() const override { return Describe(inputs_); }
  std::vector<Tensor> outputs() const override { return Describe(outputs_); }
  size_t InputSize(size_t index) const override;
  void FillInput(size_t index, const void* data) override;
  size_t OutputSize(size_t index) const override { return graphs_.first->tensors[outputs_[index]].bytes; }
  const void* OutputData(size_t index) override { return graphs_.first->tensors[outputs_[index]].data; }
  double Invoke() override;
  std::vector<OpTime> op_times() override;
  void ResetOpTimes() override;

 private:
  void FindSignature();
  void CompileModel();
  void MakeBuffers();
  LiteRtTensorBuffer MakeBuffer(const LiteRtRankedTensorType& type, size_t size);
  bool OutputsMoved() const;
  void ReadProfile();
  std::vector<Tensor> Describe(const std::vector<size_t>& indices) const;
  std::string Reported() const;

  // The compiled model is declared last, because it uses the members before it and must be destroyed before they are.
  SessionOptions options_;
  std::string model_bytes_;
  // The graphs that the runtime executes. The program reads tensors from the first one, because LiteRT does not expose
  // them.
  ObservedGraphs graphs_;
  bool has_run_ = false;
  std::vector<Delegate> delegates_;
  Owned<LiteRtEnvironment> environment_{nullptr, LiteRtDestroyEnvironment};
  Owned<LiteRtModel> model_{nullptr, LiteRtDestroyModel};
  size_t signature_ = 0;
  std::vector<size_t> inputs_, outputs_;  // indices of tensors
  std::vector<Owned<LiteRtTensorBuffer>> buffers_;
  std::vector<LiteRtTensorBuffer> input_buffers_, output_buffers_;
  Owned<LiteRtCompiledModel> compiled_{nullptr, LiteRtDestroyCompiledModel};
  LiteRtProfiler profiler_ = nullptr;
  std::vector<std::pair<uint64_t, uint64_t>> order_;  // order of nodes, by subgraph and index
  std::map<std::pair<uint64_t, uint64_t>, OpTime> op_times_;
};

LiteRtSession::LiteRtSession(const SessionOptions& options)
    : options_(options), model_bytes_(ReadModel(options.model)), delegates_(MakeDelegates(options)) {
  // The first delegate gets the graph unchanged, as it is in the model's file.
  delegates_.insert(delegates_.begin(), ObservingDelegate(&graphs_));
  environment_ = MakeEnvironment(delegates_, options.xnnpack);
  LiteRtModel model = nullptr;
  const LiteRtStatus status =
      LiteRtCreateModelFromBuffer(environment_.get(), model_bytes_.data(), model_bytes_.size(), &model);
  if (status == kLiteRtStatusErrorInvalidFlatbuffer) throw NoModel(options.model);
  if (status != kLiteRtStatusOk) {
    const char* known = "it loads no tensors that are variables, such as an LSTM's state, or of more than 8 dimensions";
    throw ModelError(options.model, Format("LiteRT refuses it (status %d); %s", status, known), "");
  }
  model_.reset(model);
  FindSignature();
  CompileModel();
  MakeBuffers();
}

// Finds the signature of the model's first graph, and the input and output tensors of this signature.
void LiteRtSession::FindSignature() {
  size_t count = 0;
  LiteRtSubgraph first = nullptr, subgraph = nullptr;
  LiteRtSignature signature = nullptr;
  Check(LiteRtGetModelSubgraph(model_.get(), 0, &first), "find the model's graph");
  Check(LiteRtGetNumModelSignatures(model_.get(), &count), "count signatures");
  for (signature_ = 0; signature_ < count; ++signature_) {
    Check(LiteRtGetModelSignature(model_.get(), signature_, &signature), "find a signature");
    Check(LiteRtGetSignatureSubgraph(signature, &subgraph), "find a signature's graph");
    if (subgraph == first) break;
  }
  if (signature_ == count) throw Error(options_.model + " has no signature for its first graph");

  LiteRtTensor tensor = nullptr;
  Check(LiteRtGetNumSignatureInputs(signature, &count), "count inputs");
  for (size_t i = 0; i < count; ++i) {
    Check(LiteRtGetSignatureInputTensorByIndex(signature, i, &tensor), "find an input");
    inputs_.push_back(IndexOf(tensor));
  }
  Check(LiteRtGetNumSignatureOutputs(signature, &count), "count outputs");
  for (size_t i = 0; i < count; ++i) {
    Check(LiteRtGetSignatureOutputTensorByIndex(signature, i, &tensor), "find an output");
    outputs_.push_back(IndexOf(tensor));
  }
}

void LiteRtSession::CompileModel() {
  const CaughtStderr silent;  // hides XNNPACK's messages
  compiled_.reset();
  graphs_ = {};
  LiteRtCompiledModel compiled = nullptr;
  if (Compile(environment_.get(), model_.get(), options_, Reporter::kBuffer, &compiled) != kLiteRtStatusOk) {
    // Without a compiled model, LiteRT has no messages to ask for. A second attempt to compile captures stderr instead.
    const CaughtStderr caught;
    Compile(environment_.get(), model_.get(), options_, Reporter::kStderr, &compiled);
    throw ModelError(options_.model, Refusal(options_), caught.errors());
  }
  compiled_.reset(compiled);
  if (graphs_.first == nullptr) throw ModelError(options_.model, "LiteRT shows no delegate the model", "");
  for (const size_t index : inputs_) RefuseOpenSizes(options_.model, graphs_.first->tensors[index]);
  // The passed count of layouts is 0 on purpose: LiteRT then allocates the tensors, and reports a wrong number of
  // layouts. With the real count, LiteRT would write past the layout of an output with more than 8 dimensions.
  LiteRtLayout none;
  if (LiteRtGetCompiledModelOutputTensorLayouts(compiled, signature_, 0, &none, true) ==
      kLiteRtStatusErrorRuntimeFailure) {
    throw ModelError(options_.model, "the runtime cannot prepare the model", Reported());
  }
  if (OutputsMoved())
    throw ModelError(options_.model, "LiteRT hands out no output of a shape that only a run tells", "");
  if (options_.profiling) {
    Check(LiteRtCompiledModelGetProfiler(compiled, &profiler_), "find the profiler");
    Check(LiteRtStartProfiler(profiler_), "start the profiler");
  }
}

void LiteRtSession::MakeBuffers() {
  for (const size_t index : inputs_) {
    const TfLiteTensor& tensor = graphs_.first->tensors[index];
    // A layout of LiteRT has room for a limited number of dimensions. LiteRT accepts no model with a tensor of more
    // dimensions.
    const auto rank = static_cast<size_t>(tensor.dims->size);
    LiteRtRankedTensorType type = {};
    type.element_type = tensor.type;
    type.layout.rank = static_cast<unsigned int>(rank) & 0x7f;
    std::copy_n(tensor.dims->data, rank, type.layout.dimensions);
    // A string tensor has no size until it is filled. The programs that cannot fill string tensors report an error
    // themselves.
    input_buffers_.push_back(tensor.type == kTfLiteString ? nullptr : MakeBuffer(type, tensor.bytes));
  }
  for (const size_t index : outputs_) {
    // LiteRT checks only that the buffer of an output has the right size.
    const size_t size = std::max<size_t>(1, graphs_.first->tensors[index].bytes);
    LiteRtRankedTensorType bytes = {};
    bytes.element_type = kTfLiteUInt8;
    bytes.layout.rank = 1;
    bytes.layout.dimensions[0] = static_cast<int32_t>(size);
    output_buffers_.push_back(MakeBuffer(bytes, size));
  }
}

LiteRtTensorBuffer LiteRtSession::MakeBuffer(const LiteRtRankedTensorType& type, size_t size) {
  LiteRtTensorBuffer buffer = nullptr;
  Check(LiteRtCreateManagedTensorBuffer(environment_.get(), kLiteRtTensorBufferTypeHostMemory, &type, size, &buffer),
        "make a tensor buffer");
  buffers_.emplace_back(buffer, LiteRtDestroyTensorBuffer);
  return buffer;
}

size_t LiteRtSession::InputSize(size_t index) const { return graphs_.first->tensors[inputs_[index]].bytes; }

void LiteRtSession::FillInput(size_t index, const void* data) {
  void* address = nullptr;
  Check(LiteRtLockTensorBuffer(input_buffers_[index], &address, kLiteRtTensorBufferLockModeWrite), "fill an input");
  std::memcpy(address, data, InputSize(index));
  Check(LiteRtUnlockTensorBuffer(input_buffers_[index]), "fill an input");
}

double LiteRtSession::Invoke() {
  using Clock = std::chrono::steady_clock;
  // If an output has a computed shape, LiteRT may have moved it to another buffer. The output stays there until the
  // model is compiled again. Compiling is also what resets variables; LiteRT loads no model with tensors as variables.
  if (OutputsMoved() || (has_run_ && graphs_.assigns_variables && !options_.keep_state)) CompileModel();
  has_run_ = true;
  const Clock::time_point start = Clock::now();
  const LiteRtStatus status =
      LiteRtRunCompiledModel(compiled_.get(), signature_, input_buffers_.size(), input_buffers_.data(),
                             output_buffers_.size(), output_buffers_.data());
  const double milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (status != kLiteRtStatusOk) throw ModelError(options_.model, "the model cannot run", Reported());
  int events = 0;
  if (profiler_ != nullptr && LiteRtGetNumProfilerEvents(profiler_, &events) == kLiteRtStatusOk &&
      (events > kManyEvents || OutputsMoved() || graphs_.assigns_variables)) {
    ReadProfile();
  }
  return milliseconds;
}

bool LiteRtSession::OutputsMoved() const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [this](size_t index) { return graphs_.first->tensors[index].allocation_type == kTfLiteDynamic; });
}

// Adds the events of the profiler to the times, and clears the events.
void LiteRtSession::ReadProfile() {
  int count = 0;
  Check(LiteRtGetNumProfilerEvents(profiler_, &count), "count the profiler's events");
  std::vector<LiteRtProfiledEvent> events(static_cast<size_t>(count));
  if (count > 0) Check(LiteRtGetProfilerEvents(profiler_, count, events.data()), "read the profiler's events");
  for (const LiteRtProfiledEvent& event : events) {
    if (event.event_type != kLiteRtOperatorInvokeEvent) continue;
    const std::pair node(event.event_metadata2, event.event_metadata1);
    const auto [time, added] = op_times_.try_emplace(node);
    if (added) {
      order_.push_back(node);
      time->second = {static_cast<int>(node.second), event.tag, "", 0, 0};
      LiteRtSubgraph subgraph = nullptr;
      LiteRtOp op = nullptr;
      LiteRtTensor output = nullptr;
      // The nodes of delegates are not ops of the model, so LiteRT reports no output tensor for them.
      if (LiteRtGetModelSubgraph(model_.get(), node.first, &subgraph) == kLiteRtStatusOk &&
          LiteRtGetSubgraphOp(subgraph, node.second, &op) == kLiteRtStatusOk &&
          LiteRtGetOpOutput(op, 0, &output) == kLiteRtStatusOk) {
        time->second.output = NameOf(output);
      }
    }
    ++time->second.calls;
    time->second.milliseconds += static_cast<double>(event.elapsed_time_us) / 1000;
  }
  Check(LiteRtStartProfiler(profiler_), "start the profiler");
}

std::vector<OpTime> LiteRtSession::op_times() {
  std::vector<OpTime> times;
  if (profiler_ == nullptr) return times;
  ReadProfile();
  for (const auto& node : order_) times.push_back(op_times_.at(node));
  return times;
}

void LiteRtSession::ResetOpTimes() {
  if (profiler_ != nullptr) Check(LiteRtStartProfiler(profiler_), "start the profiler");
  order_.clear();
  op_times_.clear();
}

std::vector<Tensor> LiteRtSession::Describe(const std::vector<size_t>& indices) const {
  std::vector<Tensor> tensors;
  for (const size_t index : indices) {
    const TfLiteTensor& tensor = graphs_.first->tensors[index];
    tensors.push_back({tensor.name != nullptr ? tensor.name : "", static_cast<ElementType>(tensor.type),
                       std::vector<int>(tensor.dims->data, tensor.dims->data + tensor.dims->size), tensor.params.scale,
                       tensor.params.zero_point});
  }
  return tensors;
}

std::string LiteRtSession::Reported() const {
  char* messages = nullptr;
  if (LiteRtCompiledModelGetErrorMessages(compiled_.get(), &messages) != kLiteRtStatusOk) return "";
  const Owned<char*> owned(messages, [](char* text) { std::free(text); });
  return messages;
}

}  // namespace

std::unique_ptr<Session> LoadSession(const SessionOptions& options) { return std::make_unique<LiteRtSession>(options); }

std::string RuntimeName() { return "LiteRT " LITERT_VERSION; }

}  // namespace litebnn::programs
