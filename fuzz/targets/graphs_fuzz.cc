// Fuzzes graphs of litebnn's ops and of builtin ops that the delegate claims. A graph runs with every ISA, as custom
// ops and through the delegate. All runs must refuse the graph with a message, or give the same bits.
#include <algorithm>
#include <cstring>

#include "fuzz/run_graph.h"
#include "tests/support/graphs.h"
#include "tflite/ops/op_list.h"

namespace litebnn::testing {
namespace {

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  template <typename T>
  T Read() {
    T value = {};
    const size_t size = std::min(sizeof(value), left_);
    if (size > 0) std::memcpy(&value, data_, size);
    Skip(size);
    return value;
  }

  int ReadBelow(int count) { return Read<uint8_t>() % count; }

  std::vector<uint8_t> Bytes(size_t size) {
    size = std::min(size, left_);
    std::vector<uint8_t> bytes(data_, data_ + size);
    Skip(size);
    return bytes;
  }

  // Reads the number of values, which is below `limit`, and then that many values.
  template <typename T, typename Element = int>
  std::vector<Element> List(int limit) {
    std::vector<Element> values(static_cast<size_t>(ReadBelow(limit)));
    for (Element& value : values) value = Read<T>();
    return values;
  }

 private:
  void Skip(size_t size) {
    data_ += size;
    left_ -= size;
  }

  const uint8_t* data_;
  size_t left_;
};

GraphTensor ReadTensor(Reader& reader) {
  constexpr TfLiteType kTypes[] = {kTfLiteFloat32, kTfLiteInt32, kTfLiteInt8, kTfLiteBool, kTfLiteInt64, kTfLiteNoType};
  GraphTensor tensor;
  tensor.type = kTypes[reader.ReadBelow(6)];
  tensor.shape = reader.List<int32_t>(6);
  tensor.quantization.scale = reader.Read<float>();
  tensor.quantization.zero_point = reader.Read<int32_t>();
  const int flags = reader.ReadBelow(8);
  if ((flags & 1) != 0) tensor.constant = reader.Bytes(reader.Read<uint32_t>());
  tensor.misaligned = (flags & 2) != 0;
  if ((flags & 4) != 0) tensor.grids.scales = reader.List<float, float>(80);
  if ((flags & 4) != 0) tensor.grids.zero_points = reader.List<int32_t>(80);
  if ((flags & 4) != 0) tensor.grids.dimension = reader.Read<int8_t>();
  return tensor;
}

// Returns the first of the library's op types for each op name. For some builtin ops, the library has several op types
// with the same name.
std::vector<const OpType*> OpsOfDifferentNames() {
  std::vector<const OpType*> ops;
  for (const OpType* type : kOpTypes) {
    const auto has_its_name = [type](const OpType* op) { return std::strcmp(op->name, type->name) == 0; };
    if (std::none_of(ops.begin(), ops.end(), has_its_name)) ops.push_back(type);
  }
  return ops;
}

GraphNode ReadNode(Reader& reader) {
  static const std::vector<const OpType*> ops = OpsOfDifferentNames();
  const OpType& op = *ops[static_cast<size_t>(reader.ReadBelow(static_cast<int>(ops.size())))];
  GraphNode node;
  node.op = op.name;
  node.inputs = reader.List<int8_t>(8);
  node.outputs = reader.List<int8_t>(3);
  if (op.IsCustom()) {
    node.options = reader.Bytes(reader.Read<uint16_t>());
  } else {
    for (int i = 0; i < 6; ++i) node.builtin.push_back(reader.Read<int32_t>());
  }
  return node;
}

// Reads a graph from bytes in a format that a fuzzer may change anywhere: missing bytes count as zeros.
//
// Numbers are little endian. A "count of n" or a "choice of n" is one byte, which is reduced modulo n.
//   tensors: count of 64, then each
//     choice of FLOAT32, INT32, INT8, BOOL, INT64, none · rank of 6, int32 each · float32 scale, int32 zero point ·
//     flags: 1 for a constant, with uint32 bytes and those; 2 for one at an odd address · if flag 4 is set, the
//     filter's grids: scales, count of 80, float32 each; zero points, count of 80, int32 each; the dimension, a byte
//   nodes: count of 32, then each
//     choice of the ops that the delegate takes, each name once, in the order of tflite/ops/op_list.h ·
//     inputs: count of 8, a byte each, 255 for none · outputs: count of 3, a byte each ·
//     a custom op's options: uint16 bytes and those · a builtin op's: six int32
//   inputs, outputs of the graph: count of 8, a byte each
Graph ReadGraph(const uint8_t* data, size_t size) {
  Reader reader(data, size);
  Graph graph;
  for (int left = reader.ReadBelow(64); left > 0; --left) graph.tensors.push_back(ReadTensor(reader));
  for (int left = reader.ReadBelow(32); left > 0; --left) graph.nodes.push_back(ReadNode(reader));
  graph.inputs = reader.List<uint8_t>(8);
  graph.outputs = reader.List<uint8_t>(8);
  return graph;
}

}  // namespace
}  // namespace litebnn::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn::testing;
  // The last byte selects the settings of the run, so that the bytes before it are a plain graph.
  const int choice = size == 0 ? 0 : data[size - 1];
  const Graph graph = ReadGraph(data, size - (size == 0 ? 0 : 1));
  if (RuntimeAccepts(graph))
    RunOnEveryIsa(graph, {choice % 8 == 7 ? 2 : 1, static_cast<size_t>(1 + choice / 8 % 4), {}});
  return 0;
}
