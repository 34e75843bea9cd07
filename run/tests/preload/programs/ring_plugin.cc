// ring_plugin FOLDER : plugins set up rings, by a liburing that nobody but they can see: loaded for
// one of them, linked into the other.
#include <dlfcn.h>

#include <string>

#include "program.h"

using namespace program;

int main(int count, char** arguments) {
  begin(count, arguments, 1 << 18);
  for (const char* const path : {RING_PLUGIN_SHARED, RING_PLUGIN_STATIC}) {
    void* const plugin = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    require(plugin != nullptr, "dlopen");
    auto* const set_up = reinterpret_cast<int (*)()>(::dlsym(plugin, "set_up_a_ring"));
    require(set_up != nullptr, "dlsym");
    std::printf("%d\n", set_up());
  }
  return 0;
}
