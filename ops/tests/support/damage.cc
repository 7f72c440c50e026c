#include "tests/support/damage.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "tflite/ops/contract.h"

namespace litebnn::testing {
namespace {

template <typename T>
T& PickElement(const RandomBits& random, std::vector<T>& values) {
  return values[random() % values.size()];
}

// A random extreme value of an integer, such as 0 or the largest int.
int Extreme(const RandomBits& random) {
  constexpr int kMax = std::numeric_limits<int>::max(), kMin = std::numeric_limits<int>::min();
  constexpr int kValues[] = {0, 1, -1, 2, 31, 32, 33, 255, 32767, 65536, 1 << 20, kMax, kMax - 1, kMin};
  return kValues[random() % std::size(kValues)];
}

// Sets one of a custom op's options to an extreme value. In the encoded options, every value takes 8 bytes.
void ChangeOption(const RandomBits& random, GraphNode* node) {
  if (node->options.size() < 18) return;
  const size_t count = node->options[node->options.size() - 1] == 8 && node->op == contract::kBMaxPool2d ? 5 : 8;
  if (node->options.size() < 10 + 9 * count) return;
  const size_t values = node->options.size() - 10 - 9 * count;
  const auto value = static_cast<uint64_t>(static_cast<int64_t>(Extreme(random)) + Pick(random, -1, 1));
  const size_t position = values + 8 * (random() % count);
  for (size_t i = 0; i < 8; ++i) node->options[position + i] = static_cast<uint8_t>(value >> (8 * i));
}

void ChangeBytes(const RandomBits& random, GraphNode* node) {
  if (node->options.empty()) return;
  switch (Pick(random, 0, 2)) {
    case 0:
      node->options.resize(random() % node->options.size());
      break;
    case 1:
      PickElement(random, node->options) = static_cast<uint8_t>(random());
      break;
    default:
      PickElement(random, node->options) ^= static_cast<uint8_t>(1 << random() % 8);
      break;
  }
}

void ChangeShape(const RandomBits& random, GraphTensor* tensor) {
  std::vector<int>& shape = tensor->shape;
  const int change = Pick(random, 0, 4);
  if (change == 0) {
    shape.push_back(Pick(random, 1, 2));
  } else if (!shape.empty()) {
    switch (change) {
      case 1:
        shape.erase(shape.begin());
        break;
      case 2:
        PickElement(random, shape) ^= Pick(random, 1, 3);
        break;
      default:
        PickElement(random, shape) = Extreme(random);
        break;
    }
  }
}

void ChangeQuantization(const RandomBits& random, GraphTensor* tensor) {
  using Limits = std::numeric_limits<float>;
  constexpr float kScales[] = {0, -1, 1e-40f, 3e38f, Limits::infinity(), Limits::quiet_NaN()};
  const float scale = kScales[random() % std::size(kScales)];
  tensor->quantization = {scale, Extreme(random)};
  GridArrays& grids = tensor->grids;
  switch (Pick(random, 0, 4)) {
    case 0:
      grids.scales.resize(static_cast<size_t>(Pick(random, 0, 3)));
      break;
    case 1:
      grids.zero_points.assign(static_cast<size_t>(Pick(random, 0, 3)), Pick(random, 0, 1));
      break;
    case 2:
      if (!grids.scales.empty()) PickElement(random, grids.scales) = scale;
      break;
    case 3:
      grids.dimension = Extreme(random);
      break;
    default:
      break;
  }
}

void ChangeConstant(const RandomBits& random, GraphTensor* tensor) {
  switch (Pick(random, 0, 3)) {
    case 0:
      tensor->constant.clear();
      break;
    case 1:
      tensor->constant.resize(static_cast<size_t>(Pick(random, 1, 64)));
      break;
    case 2:
      tensor->misaligned = true;
      break;
    default:
      for (uint8_t& byte : tensor->constant) byte = static_cast<uint8_t>(random());
      break;
  }
}

void ChangeConnection(const RandomBits& random, Graph* graph, GraphNode* node) {
  const int tensors = static_cast<int>(graph->tensors.size());
  switch (Pick(random, 0, 5)) {
    case 0:
      if (!node->inputs.empty()) PickElement(random, node->inputs) = Pick(random, -2, tensors);
      break;
    case 1:
      if (!node->outputs.empty()) PickElement(random, node->outputs) = Pick(random, -2, tensors);
      break;
    case 2:
      if (!node->inputs.empty()) node->inputs.pop_back();
      break;
    case 3:
      node->inputs.push_back(Pick(random, -1, tensors - 1));
      break;
    case 4:
      node->outputs.push_back(Pick(random, 0, tensors - 1));
      break;
    default: {
      const GraphNode copy = PickElement(random, graph->nodes);
      graph->nodes.insert(graph->nodes.begin() + Pick(random, 0, static_cast<int>(graph->nodes.size())), copy);
      break;
    }
  }
}

}  // namespace

void Damage(const RandomBits& random, Graph* graph) {
  constexpr TfLiteType kTypes[] = {kTfLiteNoType, kTfLiteFloat32, kTfLiteInt32, kTfLiteInt8, kTfLiteBool, kTfLiteInt64};
  GraphNode& node = PickElement(random, graph->nodes);
  GraphTensor& tensor = PickElement(random, graph->tensors);
  switch (Pick(random, 0, 11)) {
    case 0:
      if (!node.builtin.empty()) {
        int& option = PickElement(random, node.builtin);
        option = Pick(random, 0, 1) == 0 ? Pick(random, -1, 4) : Extreme(random);
      }
      break;
    case 1:
    case 2:
      return ChangeBytes(random, &node);
    case 3:
    case 4:
      return ChangeOption(random, &node);
    case 5:
    case 6:
    case 7:
      return ChangeShape(random, &tensor);
    case 8:
      tensor.type = kTypes[random() % std::size(kTypes)];
      break;
    case 9:
      return ChangeQuantization(random, &tensor);
    case 10:
      return ChangeConstant(random, &tensor);
    default:
      return ChangeConnection(random, graph, &node);
  }
}

}  // namespace litebnn::testing
