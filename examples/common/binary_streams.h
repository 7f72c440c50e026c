#pragma once

namespace litebnn::examples {

// Makes stdin and stdout carry bytes unchanged. Otherwise Windows would translate line ends.
void MakeStreamsBinary();

}  // namespace litebnn::examples
