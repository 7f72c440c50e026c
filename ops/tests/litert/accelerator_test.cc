// Tests the LiteRT accelerator in a fake LiteRT. tests/ops/test_litert.py runs the accelerator in the real one.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tflite/entry/defaults.h"
#include "tflite/entry/delegate.h"
#include "tflite/entry/litert_accelerator.h"
#include "tflite/runtime/litert_abi.h"

namespace litebnn {
namespace {

// The state of the fake LiteRT. All handles that the fake passes to its callers are the address of this structure.
struct Runtime {
  const char* opaque_options = nullptr;  // text under the identifier "litebnn"
  const char* cpu_options = nullptr;     // text under the identifier "xnnpack"
  std::string folder;                    // folder of accelerators
  LiteRtStatus wrap_status = kLiteRtStatusOk;
  ::TfLiteDelegate* delegate = nullptr;
  void (*deleter)(::TfLiteDelegate*) = nullptr;
};

template <class Handle>
Runtime& From(Handle handle) {
  return *reinterpret_cast<Runtime*>(handle);
}

LiteRtStatus GetOpaqueOptions(LiteRtOptions options, LiteRtOpaqueOptions* opaque_options) {
  *opaque_options = reinterpret_cast<LiteRtOpaqueOptions>(options);
  return kLiteRtStatusOk;
}

LiteRtStatus FindOpaqueOptionsData(LiteRtOpaqueOptions options, const char* identifier, void** data) {
  const char* text = std::strcmp(identifier, "litebnn") == 0   ? From(options).opaque_options
                     : std::strcmp(identifier, "xnnpack") == 0 ? From(options).cpu_options
                                                               : nullptr;
  if (text == nullptr) return kLiteRtStatusErrorNotFound;
  *data = const_cast<char*>(text);
  return kLiteRtStatusOk;
}

LiteRtStatus GetEnvironmentOptions(LiteRtEnvironment environment, LiteRtEnvironmentOptions* options) {
  *options = reinterpret_cast<LiteRtEnvironmentOptions>(environment);
  return kLiteRtStatusOk;
}

LiteRtStatus GetEnvironmentOptionsValue(LiteRtEnvironmentOptions options, int tag, LiteRtAny* value) {
  const std::string& folder = From(options).folder;
  if (tag != kLiteRtEnvOptionTagRuntimeLibraryDir || folder.empty()) return kLiteRtStatusErrorNotFound;
  value->type = kLiteRtAnyTypeString;
  value->str_value = folder.c_str();
  return kLiteRtStatusOk;
}

LiteRtStatus WrapDelegate(::TfLiteDelegate* delegate, void (*deleter)(::TfLiteDelegate*),
                          LiteRtDelegateWrapper* wrapper) {
  Runtime& runtime = From(*wrapper);
  if (runtime.wrap_status == kLiteRtStatusOk) {
    runtime.delegate = delegate;
    runtime.deleter = deleter;
  }
  return runtime.wrap_status;
}

class LiteRtAccelerator : public testing::Test {
 protected:
  LiteRtAccelerator() {
    context_.abi_header = {sizeof(context_), 1, 0, 0};
    context_.get_opaque_options = GetOpaqueOptions;
    context_.find_opaque_options_data = FindOpaqueOptionsData;
    context_.get_environment_options = GetEnvironmentOptions;
    context_.get_environment_options_value = GetEnvironmentOptionsValue;
    context_.wrap_delegate = WrapDelegate;
  }
  ~LiteRtAccelerator() override { Release(); }

  LiteRtStatus CreateDelegate() {
    Release();
    auto* handle = reinterpret_cast<LiteRtDelegateWrapper>(&runtime_);
    return LiteRtAcceleratorImpl.create_delegate(&context_, reinterpret_cast<LiteRtEnvironment>(&runtime_), nullptr,
                                                 reinterpret_cast<LiteRtOptions>(&runtime_), &handle);
  }

  // Expects that the accelerator refuses a call with this status, and returns the text that it wrote to stderr.
  std::string Refused(LiteRtStatus expected) {
    testing::internal::CaptureStderr();
    const LiteRtStatus status = CreateDelegate();
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(status, expected);
    EXPECT_EQ(runtime_.delegate, nullptr);
    return text;
  }

  const DelegateOptions& Options() {
    return Delegate::FromC(reinterpret_cast<TfLiteDelegate*>(runtime_.delegate))->options();
  }

  void WriteOptionsFile(const char* text) {
    runtime_.folder = testing::TempDir();
    std::ofstream(runtime_.folder + "/litebnn.options") << text;
  }

  void Release() {
    if (runtime_.delegate != nullptr) runtime_.deleter(runtime_.delegate);
    runtime_.delegate = nullptr;
  }

  Runtime runtime_;
  LiteRtRuntimeContext context_ = {};
};

TEST_F(LiteRtAccelerator, GivesTheRuntimeADelegate) {
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_FALSE(Options().num_threads.has_value());
  EXPECT_NE(Options().isa, nullptr);
  EXPECT_FALSE(Options().verbose);
}

TEST_F(LiteRtAccelerator, ServesNewerMinorVersions) {
  context_.abi_header = {1000, 1, 7, 0};
  EXPECT_EQ(CreateDelegate(), kLiteRtStatusOk);
}

TEST_F(LiteRtAccelerator, RefusesAnUnknownVersion) {
  context_.abi_header.major_version = 2;
  EXPECT_EQ(Refused(kLiteRtStatusErrorWrongVersion),
            "litebnn: LiteRT's runtime context is version 2.0 of " + std::to_string(sizeof(context_)) +
                " bytes, expected version 1 of at least " + std::to_string(sizeof(context_)) +
                ": this LiteRT is unknown, use litebnn.Interpreter\n");
}

TEST_F(LiteRtAccelerator, RefusesAContextThatIsTooShort) {
  context_.abi_header.struct_size = sizeof(context_) - sizeof(void*);
  EXPECT_NE(Refused(kLiteRtStatusErrorWrongVersion).find("use litebnn.Interpreter\n"), std::string::npos);
}

TEST_F(LiteRtAccelerator, RefusesAContextThatLacksAFunction) {
  context_.wrap_delegate = nullptr;
  EXPECT_NE(Refused(kLiteRtStatusErrorWrongVersion).find("lacks functions"), std::string::npos);
}

// In LiteRT 2.1, the structure of a context begins with pointers to functions, not with the field abi_header. The
// accelerator must not take a pointer for a valid header.
TEST_F(LiteRtAccelerator, RefusesAContextWithoutAHeader) {
  const uint64_t address = 0x7f9556601230;
  std::memcpy(&context_.abi_header, &address, sizeof(address));
  EXPECT_NE(Refused(kLiteRtStatusErrorWrongVersion).find("use litebnn.Interpreter\n"), std::string::npos);
}

TEST_F(LiteRtAccelerator, RefusesNoContext) {
  LiteRtDelegateWrapper wrapper = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(LiteRtAcceleratorImpl.create_delegate(nullptr, nullptr, nullptr, nullptr, &wrapper),
            kLiteRtStatusErrorWrongVersion);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("use litebnn.Interpreter\n"), std::string::npos);
}

TEST_F(LiteRtAccelerator, TakesTheOptionsOfAModel) {
  runtime_.opaque_options = "isa=portable\n num_threads=3 verbose=1\n";
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_EQ(Options().isa, FindIsa("portable"));
  EXPECT_EQ(Options().num_threads, 3);
  EXPECT_TRUE(Options().verbose);
}

TEST_F(LiteRtAccelerator, TakesTheOptionsOfTheFolder) {
  WriteOptionsFile("isa=portable\n");
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_EQ(Options().isa, FindIsa("portable"));
}

TEST_F(LiteRtAccelerator, AModelsOptionsComeBeforeTheFolders) {
  WriteOptionsFile("num_threads=2\n");
  runtime_.opaque_options = "num_threads=3";
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_EQ(Options().num_threads, 3);
}

TEST_F(LiteRtAccelerator, AFolderNeedsNoOptions) {
  runtime_.folder = testing::TempDir() + "/absent";
  EXPECT_EQ(CreateDelegate(), kLiteRtStatusOk);
}

TEST_F(LiteRtAccelerator, TakesTheThreadsOfTheCpuOptions) {
  runtime_.cpu_options = "flags = 5\nnum_threads = 3\n";
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_EQ(Options().num_threads, 3);
  runtime_.opaque_options = "num_threads=2";
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_EQ(Options().num_threads, 2);
}

TEST_F(LiteRtAccelerator, PassesOverThreadsThatAreNone) {
  for (const char* text : {"num_threads = 0\n", "num_threads = -1\n", "num_threads = \"x\"\n", "num_threads", ""}) {
    runtime_.cpu_options = text;
    ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
    EXPECT_FALSE(Options().num_threads.has_value());
  }
  runtime_.cpu_options = "num_threads = 100000\n";
  ASSERT_EQ(CreateDelegate(), kLiteRtStatusOk);
  EXPECT_EQ(Options().num_threads, kMaxThreads);
}

TEST_F(LiteRtAccelerator, RefusesUnknownOptionsInOneLine) {
  runtime_.opaque_options = "threads=3";
  EXPECT_EQ(Refused(kLiteRtStatusErrorInvalidArgument),
            "litebnn: unknown option 'threads': expected one of num_threads, isa, verbose, describe\n");
  runtime_.opaque_options = "verbose";
  EXPECT_EQ(Refused(kLiteRtStatusErrorInvalidArgument), "litebnn: option verbose: expected 0 or 1, found ''\n");
}

TEST_F(LiteRtAccelerator, KeepsNothingThatTheRuntimeDidNotTake) {
  runtime_.wrap_status = kLiteRtStatusErrorInvalidArgument;
  EXPECT_EQ(Refused(kLiteRtStatusErrorInvalidArgument), "");
}

TEST_F(LiteRtAccelerator, IsAnAcceleratorOfTheCpu) {
  const char* name = nullptr;
  int hardware = 0;
  bool compiles = false;
  LiteRtApiVersion version = {-1, -1, -1};
  EXPECT_EQ(LiteRtAcceleratorImpl.get_name(nullptr, &name), kLiteRtStatusOk);
  EXPECT_EQ(LiteRtAcceleratorImpl.get_hardware_support(nullptr, &hardware), kLiteRtStatusOk);
  EXPECT_EQ(LiteRtAcceleratorImpl.is_tflite_delegate_responsible_for_jit_compilation(nullptr, &compiles),
            kLiteRtStatusOk);
  EXPECT_EQ(LiteRtAcceleratorImpl.get_version(nullptr, &version), kLiteRtStatusOk);
  EXPECT_STREQ(name, "litebnn");
  EXPECT_EQ(hardware, kLiteRtHwAcceleratorCpu);
  EXPECT_TRUE(compiles);
  const std::string text =
      std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  EXPECT_EQ(text, litebnn_version());
}

TEST(RegisterAccelerator, NeedsALiteRtInTheProcess) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(litebnn_register_accelerator(nullptr), kLiteRtStatusErrorWrongVersion);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "litebnn: this process has no LiteRT of version 2.1.6 or newer: LiteRtDestroyDelegateWrapper is not "
            "exported, use litebnn.Interpreter\n");
}

}  // namespace
}  // namespace litebnn
