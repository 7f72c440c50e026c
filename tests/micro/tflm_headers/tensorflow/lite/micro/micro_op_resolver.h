#pragma once

#include "tensorflow/lite/micro/micro_context.h"
