#pragma once

namespace litebnn::examples {

// Switches stdin and stdout to binary mode, so that Windows does not translate line ends.
void MakeStreamsBinary();

}  // namespace litebnn::examples
