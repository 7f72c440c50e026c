// Runs a model for another program at the other end of a pipe or of ssh. For each run, this program reads the bytes of
// all inputs from stdin and writes the bytes of all outputs to stdout, until stdin ends.
#include <cstdio>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/session.h"

namespace litebnn::programs {
namespace {

// Reads the inputs of one run. Returns false if stdin ended before the inputs began.
bool ReadInputs(Session& session) {
  const size_t count = session.inputs().size();
  for (size_t i = 0; i < count; ++i) {
    std::vector<char> bytes(session.InputSize(i));
    const size_t read = std::fread(bytes.data(), 1, bytes.size(), stdin);
    if (read == 0 && i == 0 && !bytes.empty()) return false;
    if (read != bytes.size()) {
      throw Error(Format("stdin ends in the middle of a run: %zu of %zu bytes of the input %s", read, bytes.size(),
                         session.inputs()[i].name.c_str()));
    }
    session.FillInput(i, bytes.data());
  }
  return count > 0;
}

void WriteOutputs(Session& session) {
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    std::fwrite(session.OutputData(i), 1, session.OutputSize(i), stdout);
  }
  if (std::fflush(stdout) != 0) throw Error("cannot write to the standard output");
}

void Main(int argc, char** argv) {
  SessionOptions options;
  const std::vector<Flag> flags = {
      {"graph", 0, &options.model, "the model"},
      {"num_threads", 0, IntFlag{&options.num_threads, 1, kMostThreads}, "number of threads"},
      {"lcompute", 0, &options.lcompute, "run litebnn's custom ops"},
      {"use_xnnpack", 0, &options.xnnpack, "run float and quantized ops in XNNPACK"},
      {"external_delegate_path", 0, &options.external_delegate, "delegate library to load"},
      {"keep_state", 0, &options.keep_state, "keep variables, such as an LSTM's state, from one run to the next"},
  };
  if (!ParseFlags(argc, argv, flags)) return;
  if (options.model.empty()) throw Error("name the model with --graph=FILE");
  const std::unique_ptr<Session> session = LoadSession(options);
  MakeStreamsBinary();
  while (ReadInputs(*session)) {
    session->Invoke();
    WriteOutputs(*session);
  }
}

}  // namespace
}  // namespace litebnn::programs

int main(int argc, char** argv) { return litebnn::programs::RunProgram(litebnn::programs::Main, argc, argv); }
