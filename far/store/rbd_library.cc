#include "far/store/rbd_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

#include "core/os/late_calls.h"

namespace outcore::store {
namespace {

std::mutex loading;
RbdLibrary table;
std::atomic<bool> is_loaded{false};

Status find_library(const char* name, const char* package, void** library) {
  *library = os::open_library(name, RTLD_NOW | RTLD_LOCAL);
  if (*library != nullptr) return {};
  const char* why = ::dlerror();
  return Error{ENOTSUP, std::string("open an rbd:// store: ") + (why == nullptr ? name : why) +
                            "; install " + package};
}

Status find_function(void* library, const char* name, void* into) {
  void* const address = ::dlsym(library, name);
  if (address == nullptr)
    return Error{ENOTSUP, std::string("open an rbd:// store: librbd has no ") + name +
                              ": install that of Ceph 16 or newer"};
  std::memcpy(into, &address, sizeof address);
  return {};
}

Status fill(RbdLibrary& into) {
  void* library = nullptr;
  if (Status s = find_library("librados.so.2", "librados2", &library); !s) return s;
#define OUTCORE_FIND(name) \
  if (Status s = find_function(library, #name, &into.name); !s) return s;
  OUTCORE_RADOS_FUNCTIONS(OUTCORE_FIND)
  if (Status s = find_library("librbd.so.1", "librbd1", &library); !s) return s;
  OUTCORE_RBD_FUNCTIONS(OUTCORE_FIND)
#undef OUTCORE_FIND
  return {};
}

}  // namespace

Result<const RbdLibrary*> RbdLibrary::load() {
  if (is_loaded.load(std::memory_order_acquire)) return &table;
  const std::lock_guard<std::mutex> guard(loading);
  if (!is_loaded.load(std::memory_order_relaxed)) {
    if (Status s = fill(table); !s) return s.error();
    is_loaded.store(true, std::memory_order_release);
  }
  return &table;
}

}  // namespace outcore::store
