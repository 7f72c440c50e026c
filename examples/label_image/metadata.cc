#include "label_image/metadata.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "common/error.h"

namespace litebnn::programs {
namespace {

// The slots (positions in the flatbuffer table) of the fields that this file reads, in .tflite files and in TFLite
// Metadata.
enum ModelField { kBuffers = 4, kMetadata = 6 };
enum MetadataField { kMetadataName = 0, kMetadataBuffer = 1 };
enum BufferField { kBufferData = 0 };
enum ModelMetadataField { kSubgraphs = 3 };
enum SubgraphField { kInputs = 2, kOutputs = 3, kCustomMetadata = 9 };
enum TensorField { kProcessUnits = 4, kAssociatedFiles = 6 };
enum ProcessUnitField { kOptionsType = 0, kOptions = 1 };
enum NormalizationField { kMean = 0, kDeviation = 1 };
enum FileField { kFileName = 0, kFileType = 2 };
enum CustomField { kCustomName = 0, kCustomData = 1 };

constexpr uint8_t kNormalization = 1;
constexpr uint8_t kAxisLabels = 2;
constexpr char kBufferName[] = "TFLITE_METADATA";
constexpr char kCropName[] = "litebnn_center_crop";

Error Damaged() { return Error("its metadata is damaged"); }

// The bytes of a file, with functions that read values at given positions. These functions throw Error for positions
// outside the file.
class Bytes {
 public:
  explicit Bytes(const std::string& content) : content_(content) {}

  template <class Number>
  Number At(uint64_t position) const {
    if (position > content_.size() || content_.size() - position < sizeof(Number)) throw Damaged();
    Number number;
    std::memcpy(&number, content_.data() + position, sizeof(Number));
    return number;
  }
  std::string Text(uint64_t position, uint64_t size) const {
    if (position > content_.size() || content_.size() - position < size) throw Damaged();
    return content_.substr(position, size);
  }
  uint64_t size() const { return content_.size(); }

 private:
  const std::string& content_;
};

// A table of a flatbuffer, whose fields are found by their slots.
class Table {
 public:
  Table(const Bytes& bytes, uint64_t position) : bytes_(&bytes), position_(position) {}
  static Table Root(const Bytes& bytes) { return {bytes, bytes.At<uint32_t>(0)}; }

  // Returns the position of a field, or 0 if the table does not have the field.
  uint64_t Field(int slot) const {
    const auto fields = static_cast<int64_t>(position_) - bytes_->At<int32_t>(position_);
    if (fields < 0) throw Damaged();
    const auto start = static_cast<uint64_t>(fields);
    const uint64_t entry = 4 + 2 * static_cast<uint64_t>(slot);
    if (entry + 2 > bytes_->At<uint16_t>(start)) return 0;
    const uint16_t offset = bytes_->At<uint16_t>(start + entry);
    return offset == 0 ? 0 : position_ + offset;
  }
  template <class Number>
  Number Get(int slot) const {
    const uint64_t field = Field(slot);
    return field == 0 ? Number{} : bytes_->At<Number>(field);
  }
  // Returns the content of a field that is a string or a vector of bytes.
  std::string Text(int slot) const {
    const uint64_t target = Target(slot);
    return target == 0 ? "" : bytes_->Text(target + 4, bytes_->At<uint32_t>(target));
  }
  std::vector<float> Floats(int slot) const {
    std::vector<float> numbers;
    for (const uint64_t element : Elements(slot)) numbers.push_back(bytes_->At<float>(element));
    return numbers;
  }
  std::vector<Table> Tables(int slot) const {
    std::vector<Table> tables;
    for (const uint64_t element : Elements(slot)) tables.emplace_back(*bytes_, Follow(element));
    return tables;
  }
  Table Child(int slot) const { return {*bytes_, Target(slot)}; }

 private:
  uint64_t Follow(uint64_t position) const { return position + bytes_->At<uint32_t>(position); }
  uint64_t Target(int slot) const {
    const uint64_t field = Field(slot);
    return field == 0 ? 0 : Follow(field);
  }
  // Returns the positions of the elements of a field that is a vector. Each element has 4 bytes.
  std::vector<uint64_t> Elements(int slot) const {
    std::vector<uint64_t> positions;
    const uint64_t target = Target(slot);
    if (target == 0) return positions;
    const uint64_t count = bytes_->At<uint32_t>(target);
    if (count > bytes_->size() / 4) throw Damaged();
    for (uint64_t i = 0; i < count; ++i) positions.push_back(target + 4 + 4 * i);
    return positions;
  }

  const Bytes* bytes_;
  uint64_t position_;
};

// Finds the flatbuffer of the metadata in a model; empty if the model has none.
std::string FindMetadata(const Bytes& model) {
  if (model.size() < 8 || model.Text(4, 4) != "TFL3") return "";
  const Table root = Table::Root(model);
  const std::vector<Table> buffers = root.Tables(kBuffers);
  for (const Table& entry : root.Tables(kMetadata)) {
    const auto buffer = entry.Get<uint32_t>(kMetadataBuffer);
    if (entry.Text(kMetadataName) == kBufferName && buffer < buffers.size()) return buffers[buffer].Text(kBufferData);
  }
  return "";
}

// Reads a file in the zip archive at the end of a model. The file must be stored without compression, as the format
// demands.
std::string ReadFromArchive(const Bytes& model, const std::string& name) {
  constexpr uint64_t kEndBytes = 22;
  constexpr uint64_t kLongestComment = 65535;
  const auto missing = [&name] { return Error(Format("its metadata names %s, which it does not have", name.c_str())); };
  if (model.size() < kEndBytes) throw missing();
  const uint64_t last = model.size() - kEndBytes;
  uint64_t end = last;
  while (model.Text(end, 4) != "PK\5\6") {
    if (end == 0 || last - end == kLongestComment) throw missing();
    --end;
  }
  const uint64_t directory_bytes = model.At<uint32_t>(end + 12);
  const uint64_t directory = model.At<uint32_t>(end + 16);
  // Depending on the writer, offsets in the archive count from the start of the file or from the start of the archive.
  if (end < directory_bytes + directory) throw Damaged();
  const uint64_t base = end - directory_bytes - directory;
  const uint16_t entries = model.At<uint16_t>(end + 10);
  uint64_t entry = base + directory;
  for (uint16_t i = 0; i < entries; ++i) {
    if (model.Text(entry, 4) != "PK\1\2") throw Damaged();
    const uint16_t name_bytes = model.At<uint16_t>(entry + 28);
    if (model.Text(entry + 46, name_bytes) == name) {
      if (model.At<uint16_t>(entry + 10) != 0) {
        throw Error(Format("its %s is compressed, expected a stored file", name.c_str()));
      }
      const uint64_t local = base + model.At<uint32_t>(entry + 42);
      const uint64_t skipped = uint64_t{30} + model.At<uint16_t>(local + 26) + model.At<uint16_t>(local + 28);
      return model.Text(local + skipped, model.At<uint32_t>(entry + 24));
    }
    entry += uint64_t{46} + name_bytes + model.At<uint16_t>(entry + 30) + model.At<uint16_t>(entry + 32);
  }
  throw missing();
}

void ReadNormalization(const Table& input, Metadata& metadata) {
  for (const Table& unit : input.Tables(kProcessUnits)) {
    if (unit.Get<uint8_t>(kOptionsType) != kNormalization || unit.Field(kOptions) == 0) continue;
    const Table options = unit.Child(kOptions);
    metadata.mean = options.Floats(kMean);
    metadata.deviation = options.Floats(kDeviation);
  }
}

float ReadCrop(const std::string& text) {
  char* end = nullptr;
  const float crop = std::strtof(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(crop > 0 && crop <= 1)) {
    throw Error(Format("its metadata %s is no number from 0 to 1", kCropName));
  }
  return crop;
}

}  // namespace

Metadata ReadMetadata(const std::string& model) {
  Metadata metadata;
  const Bytes model_bytes(model);
  const std::string content = FindMetadata(model_bytes);
  if (content.empty()) return metadata;
  const Bytes bytes(content);
  const std::vector<Table> graphs = Table::Root(bytes).Tables(kSubgraphs);
  if (graphs.empty()) return metadata;
  const std::vector<Table> inputs = graphs[0].Tables(kInputs);
  const std::vector<Table> outputs = graphs[0].Tables(kOutputs);
  if (!inputs.empty()) ReadNormalization(inputs[0], metadata);
  for (const Table& custom : graphs[0].Tables(kCustomMetadata)) {
    if (custom.Text(kCustomName) == kCropName) metadata.crop = ReadCrop(custom.Text(kCustomData));
  }
  if (outputs.empty()) return metadata;
  for (const Table& file : outputs[0].Tables(kAssociatedFiles)) {
    if (file.Get<uint8_t>(kFileType) != kAxisLabels || !metadata.labels_name.empty()) continue;
    metadata.labels_name = file.Text(kFileName);
    metadata.labels = ReadFromArchive(model_bytes, metadata.labels_name);
  }
  return metadata;
}

}  // namespace litebnn::programs
