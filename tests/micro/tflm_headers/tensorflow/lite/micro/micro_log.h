#pragma once

void MicroPrintf(const char* format, ...);
