// What the delegate does with a model's nodes, as JSON for litebnn_describe (include/litebnn/litebnn.h).
#pragma once

#include <string>
#include <vector>

#include "tflite/partition/claim.h"
#include "tflite/partition/stages.h"

namespace litebnn {

// The steps of one partition, as a JSON array.
std::string DescribeSteps(const std::vector<Step>& steps);

// The nodes that the runtime keeps, each with the reason, as a JSON array.
std::string DescribeLeft(const std::vector<PlannedNode>& plan, const std::vector<Claim>& claims);

}  // namespace litebnn
