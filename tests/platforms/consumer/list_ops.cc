// A C++ program as a user of the development kit would write it: it registers the ops with a resolver, and prints their
// names.
#include <litebnn/register_ops.h>

#include <cstdio>

struct Resolver {
  void AddCustom(const char* name, const TfLiteRegistration* registration) {
    if (registration != nullptr) std::puts(name);
  }
};

int main() {
  Resolver resolver;
  litebnn::RegisterOps(resolver);
}
