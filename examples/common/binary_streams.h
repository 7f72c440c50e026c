#pragma once

namespace litebnn::examples {

// Lets stdin and stdout carry any bytes. Windows would translate the ends of lines.
void MakeStreamsBinary();

}  // namespace litebnn::examples
