#include "tests/kernels/run_bconv2d.h"

namespace litebnn {

std::vector<uint8_t> RunBconv(const Isa& isa, const BconvCase& c, const BconvData& data, int threads, bool in_place) {
  const auto pool = ThreadPool::Create(threads);
  const auto conv = Bconv2d::Create(isa, data.spec, data.filter.data());
  EXPECT_NE(pool, nullptr);
  EXPECT_NE(conv, nullptr);
  EXPECT_TRUE(conv->Resize(data.geometry));
  GuardedBuffer input(data.input), addend(data.addend), workspace(conv->WorkspaceBytes(threads));
  GuardedBuffer gate(data.gate), slope(data.slope);
  const size_t output_bytes = OutputBytes(c, data.geometry);
  GuardedBuffer output(output_bytes);
  if (in_place) std::memcpy(output.data(), addend.data(), output_bytes);
  const float* const added = in_place ? output.As<float>() : addend.As<float>();
  const int64_t gate_stride = c.gates > 1 ? c.channels_out : 0;
  if (c.gates == 0 || conv->gates()) {
    conv->Run(*pool, input.As<uint32_t>(), {gate.As<float>(), gate_stride, slope.As<float>(), added, c.rectify_sum},
              output.data(), workspace.data());
  } else {
    GuardedBuffer convolved(output_bytes);
    conv->Run(*pool, input.As<uint32_t>(), {}, convolved.data(), workspace.data());
    const Bconv2dGeometry& g = data.geometry;
    const int64_t row = int64_t{g.output_width} * c.channels_out;
    GateImages(isa, *pool,
               {g.batch,
                g.output_height,
                g.output_width,
                c.channels_out,
                {convolved.As<float>(), g.output_height * row, row, c.channels_out},
                {gate.As<float>(), gate_stride, 0, 0},
                false,
                slope.As<float>(),
                added,
                c.rectify_sum,
                output.As<float>()});
  }
  return std::vector<uint8_t>(output.data(), output.data() + output_bytes);
}

void ExpectAsReference(const Isa& isa, const BconvCase& c, int threads) {
  BconvData data;
  if (!MakeBconvData(c, &data)) return;
  const std::vector<uint8_t> expected = ReferenceBconv(c, data);
  EXPECT_TRUE(RunBconv(isa, c, data, threads) == expected) << Describe(c) << ", threads " << threads;
  if (data.addend.empty()) return;
  EXPECT_TRUE(RunBconv(isa, c, data, threads, true) == expected) << Describe(c) << ", in place";
}

}  // namespace litebnn
