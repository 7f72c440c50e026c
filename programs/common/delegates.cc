#include "common/delegates.h"

#include "kernels/platform/loaded_library.h"

namespace litebnn::programs {
namespace {

using Create = decltype(tflite_plugin_create_delegate);
using Destroy = decltype(tflite_plugin_destroy_delegate);

Delegate Make(const std::string& name, Create* create, Destroy* destroy) {
  static std::string reason;  // static, because the report callback has no user data
  reason.clear();
  const auto report = [](const char* message) { reason += Format(": %s", message); };
  Delegate delegate(create(nullptr, nullptr, 0, report), destroy);
  if (delegate == nullptr) throw Error(Format("%s cannot be made%s", name.c_str(), reason.c_str()));
  return delegate;
}

Delegate Load(const std::string& path) {
  // The delegate's library is never closed, because the runtime and the delegate's threads may call functions of it
  // until the program ends.
  std::string problem;
  void* library = OpenLibrary(path.c_str(), &problem);
  if (library == nullptr) throw Error(Format("cannot load the delegate %s: %s", path.c_str(), problem.c_str()));
  const auto create = reinterpret_cast<Create*>(FindSymbol(library, "tflite_plugin_create_delegate"));
  const auto destroy = reinterpret_cast<Destroy*>(FindSymbol(library, "tflite_plugin_destroy_delegate"));
  if (create == nullptr || destroy == nullptr) {
    throw Error(Format("%s is no delegate library: it exports no tflite_plugin_create_delegate", path.c_str()));
  }
  return Make("the delegate " + path, create, destroy);
}

// Makes a delegate that claims no node. Its only effect is that the runtime calls `prepare` on the graph.
Delegate MakeIdle(TfLiteStatus (*prepare)(TfLiteContext*, TfLiteDelegate*), void* data) {
  auto* delegate = new TfLiteDelegate();
  delegate->data_ = data;
  delegate->Prepare = prepare;
  delegate->flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  const auto destroy = [](::TfLiteDelegate* made) { delete reinterpret_cast<TfLiteDelegate*>(made); };
  return Delegate(reinterpret_cast<::TfLiteDelegate*>(delegate), destroy);
}

template <class Visit>
TfLiteStatus ForEachNode(TfLiteContext* context, const Visit& visit) {
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  for (int i = 0; i < plan->size; ++i) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != kTfLiteOk) return kTfLiteError;
    visit(node, registration);
  }
  return kTfLiteOk;
}

// Replaces the functions of litebnn's ops in the graph by those that are linked into this program.
TfLiteStatus RegisterOps(TfLiteContext* context, TfLiteDelegate*) {
  return ForEachNode(context, [context](TfLiteNode* node, TfLiteRegistration* registration) {
    const auto* ours = reinterpret_cast<const TfLiteRegistration*>(litebnn_registration(registration->custom_name));
    if (ours == nullptr) return;
    // Only the functions of a custom op's registration are replaced. The other members depend on the runtime's version,
    // so they stay as they are.
    registration->init = ours->init;
    registration->free = ours->free;
    registration->prepare = ours->prepare;
    registration->invoke = ours->invoke;
    const auto* options = static_cast<const char*>(node->custom_initial_data);
    node->user_data = ours->init(context, options, static_cast<size_t>(node->custom_initial_data_size));
  });
}

}  // namespace

std::vector<Delegate> MakeDelegates(const SessionOptions& options) {
  std::vector<Delegate> delegates;
  if (!options.external_delegate.empty()) delegates.push_back(Load(options.external_delegate));
  if (options.lcompute && options.profiling) {
    // litebnn's delegate would run several nodes as one. For profiling, the program does not use the delegate. Instead
    // it gives litebnn's functions to the custom ops, so that each node is measured separately.
    delegates.push_back(MakeIdle(RegisterOps, nullptr));
  } else if (options.lcompute) {
    delegates.push_back(Make("litebnn's delegate", tflite_plugin_create_delegate, tflite_plugin_destroy_delegate));
  }
  return delegates;
}

Delegate ObservingDelegate(ObservedGraphs* graphs) {
  const auto observe = [](TfLiteContext* context, TfLiteDelegate* delegate) {
    auto* observed = static_cast<ObservedGraphs*>(delegate->data_);
    if (observed->first == nullptr) observed->first = context;
    return ForEachNode(context, [observed](TfLiteNode*, TfLiteRegistration* registration) {
      if (registration->builtin_code == kTfLiteBuiltinAssignVariable) observed->assigns_variables = true;
    });
  };
  return MakeIdle(observe, graphs);
}

}  // namespace litebnn::programs
