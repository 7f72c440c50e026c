// Reads graphs from bytes in a format that a fuzzer may change anywhere: missing bytes count as zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/support/fake_runtime.h"

namespace litebnn::testing {

// Reads a graph. Numbers are little endian. A "count of n" or a "choice of n" is one byte, which is reduced modulo n.
//   tensors: count of 64, then each
//     choice of FLOAT32, INT32, INT8, BOOL, INT64, none · rank of 6, int32 each · float32 scale, int32 zero point ·
//     flags: 1 for a constant, with uint32 bytes and those; 2 for one at an odd address · if flag 4 is set, the
//     filter's grids: scales, count of 80, float32 each; zero points, count of 80, int32 each; the dimension, a byte
//   nodes: count of 32, then each
//     choice of the ops that the delegate takes, each name once, in the order of tflite/ops/op_list.h ·
//     inputs: count of 8, a byte each, 255 for none · outputs: count of 3, a byte each ·
//     a custom op's options: uint16 bytes and those · a builtin op's: six int32
//   inputs, outputs of the graph: count of 8, a byte each
Graph ReadGraph(const uint8_t* data, size_t size);

}  // namespace litebnn::testing
