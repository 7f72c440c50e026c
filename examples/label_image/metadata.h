// TFLite Metadata of image classifiers: the labels and the preprocessing, which the .tflite file itself holds.
#pragma once

#include <string>
#include <vector>

namespace litebnn::programs {

struct Metadata {
  std::vector<float> mean;  // subtracted from pixels: one number, or one a channel; empty if the file has none
  std::vector<float> deviation;
  float crop = 0;  // share of the shorter side that is cropped before a bicubic resize; 0 to resize the whole image
  std::string labels_name;  // name of the labels in the file's archive; empty if the file has none
  std::string labels;       // names of the outputs, one a line
};

// Reads the metadata from the content of a .tflite file; empty if the file has none. Throws Error if the metadata is
// damaged.
Metadata ReadMetadata(const std::string& model);

}  // namespace litebnn::programs
