// TFLite Metadata of image classifiers: the labels and the preprocessing that a .tflite file itself holds.
#pragma once

#include <string>
#include <vector>

namespace litebnn::examples {

struct Metadata {
  std::vector<float> mean;  // subtracted from pixels: one number, or one a channel; empty if the file has none
  std::vector<float> deviation;
  float crop = 0;  // share of the shorter side that is cropped before a bicubic resize; 0 to resize the whole image
  std::string labels_name;  // name of the labels in the file's archive; empty if the file has none
  std::string labels;       // names of the outputs, one a line
};

// The metadata in the content of a .tflite file; empty if it has none. Throws Error if it is damaged.
Metadata ReadMetadata(const std::string& model);

}  // namespace litebnn::examples
