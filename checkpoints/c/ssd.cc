// Memory that is part of a program's checkpoints. See outcore/ssd.h.
#include "outcore/ssd.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoints/c/ssd_pool.h"
#include "core/base/assert.h"
#include "core/c/outcome.h"
#include "outcore/checkpoint.h"
#include "outcore/runtime.h"

using outcore::CheckpointOptions;
using outcore::CheckpointPart;
using outcore::Error;
using outcore::Region;
using outcore::Result;
using outcore::Runtime;
using outcore::Status;
using namespace outcore::c;

namespace {

constexpr const char* kRangeName = "ordinary memory";  // of the object that holds it

struct Named {
  std::string name;
  Region region;
};

// Never destroyed: what is in no checkpoint need not be kept, and threads may run until the end.
struct Ssd {
  std::mutex mutex;
  pid_t process = 0;
  std::unique_ptr<Runtime> runtime;
  std::map<void*, Named> memory;
  std::unique_ptr<SsdPool> pool;
  std::string pool_text;
};

// At the end of a call: a pool in which no memory is left is unlocked for others.
class Rest {
 public:
  explicit Rest(Ssd& all) : all_(all) {}
  ~Rest() {
    OC_CHECK(all_.pool != nullptr);
    if (all_.memory.empty()) all_.pool->rest();
  }
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;

 private:
  Ssd& all_;
};

// nullptr in a forked child.
Ssd* the_ssd() {
  static Ssd* const all = new Ssd{.process = ::getpid()};
  return all->process == ::getpid() ? all : nullptr;
}

int no_child(const char* function) {
  return fail(EPERM, std::string(function) + ": the memory is the parent's: start a new program");
}

// The pool that OUTCORE_POOL names; while there is memory, the pool that it named first.
Result<SsdPool*> pool(Ssd& all, const char* function) {
  const char* text = std::getenv("OUTCORE_POOL");
  if (text == nullptr || *text == 0)
    return Error{ENOENT, std::string(function) +
                             ": no pool to keep it in: set OUTCORE_POOL to a folder, which is "
                             "made, or to rbd://CEPHPOOL"};
  if (all.pool != nullptr && (all.pool_text == text || !all.memory.empty())) return all.pool.get();
  auto made = ssd_pool(text);
  if (!made) return Error{made.code(), std::string(function) + ": " + made.message()};
  all.pool = std::move(made).value();
  all.pool_text = text;
  return all.pool.get();
}

int allocate(Ssd& all, const std::string& name, size_t size_bytes, void** memory) {
  const std::lock_guard<std::mutex> guard(all.mutex);
  const auto where = pool(all, "oc_ssd_malloc");
  if (!where) return outcome(where.error());
  for (const auto& [address, named] : all.memory)
    if (named.name == name)
      return fail(EBUSY, "oc_ssd_malloc: '" + name + "' is in use: free it, or take another name");
  if (name == kRangeName)
    return fail(EINVAL,
                "oc_ssd_malloc: '" + name + "' is the name of the range of ordinary memory");
  SsdPool& home = *where.value();
  const Rest rest(all);
  if (Status s = home.prepare(); !s) return outcome(s);
  const auto held = home.size_of(name);
  if (!held) return fail(held.code(), "oc_ssd_malloc: '" + name + "': " + held.message());
  if (held.value() != 0 && held.value() != size_bytes)
    return fail(EINVAL, "oc_ssd_malloc: '" + name + "' has " + std::to_string(held.value()) +
                            " bytes in " + home.uri() + ", not " + std::to_string(size_bytes) +
                            ": ask for as many, or another name");
  if (all.runtime == nullptr) {
    auto started = Runtime::start();
    if (!started) return outcome(started.error());
    all.runtime = std::make_unique<Runtime>(std::move(started).value());
  }
  auto region = home.map(*all.runtime, name, size_bytes);
  if (!region) return outcome(region.error());
  *memory = region->data();
  OC_ASSERT(!all.memory.contains(*memory));
  all.memory.emplace(*memory, Named{name, std::move(region).value()});
  return 0;
}

int release(Ssd& all, void* memory) {
  const std::lock_guard<std::mutex> guard(all.mutex);
  const auto where = pool(all, "oc_ssd_free");
  if (!where) return outcome(where.error());
  const auto found = all.memory.find(memory);
  if (found == all.memory.end())
    return fail(EINVAL, "oc_ssd_free: the address is not from oc_ssd_malloc");
  const Rest rest(all);
  if (Status s = where.value()->keep(); !s) return outcome(s);
  if (Status s = found->second.region.unmap(true); !s) return outcome(s);
  const std::string name = found->second.name;
  all.memory.erase(found);
  return outcome(where.value()->remove(name));
}

// The size of an object in a checkpoint; 0: it is not in it.
Result<uint64_t> size_of(const std::string& where, const std::string& name,
                         const std::string& checkpoint) {
  const auto objects = outcore::list_objects(where, checkpoint);
  if (!objects) return objects.error();
  for (const outcore::CheckpointObject& object : objects.value())
    if (object.name == name) return object.size_bytes;
  return uint64_t{0};
}

// In the pool, checkpoints are called NAME.NUMBER: the new one is complete before the old one is
// removed, and the newest counts.
uint64_t number_of(const std::string& held, const std::string& name) {  // 0: it is no such
  uint64_t number = 0;
  if (held.size() < name.size() + 2 || !held.starts_with(name + ".")) return 0;
  const char* const first = held.data() + name.size() + 1;
  const auto parsed = std::from_chars(first, held.data() + held.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == held.data() + held.size() ? number : 0;
}

int make(Ssd& all, const std::string& name, const void* memory, size_t size_bytes) {
  const std::lock_guard<std::mutex> guard(all.mutex);
  const auto where = pool(all, "oc_ssd_checkpoint");
  if (!where) return outcome(where.error());
  SsdPool& home = *where.value();
  std::vector<CheckpointPart> parts;
  for (const auto& [address, named] : all.memory)
    parts.push_back(home.part_of(named.name, named.region));
  if (memory != nullptr)  // it is only read
    parts.emplace_back(kRangeName, const_cast<void*>(memory), size_bytes);
  const Rest rest(all);
  if (Status s = home.prepare(); !s) return outcome(s);
  CheckpointOptions options;
  options.pool = home.uri();
  std::vector<std::string> old;
  uint64_t newest = 0;
  if (home.is_there()) {
    const auto held = outcore::list_checkpoints(home.uri());
    if (!held) return outcome(held.error());
    for (const outcore::CheckpointInfo& one : held.value())
      if (const uint64_t number = number_of(one.name, name); number != 0) {
        newest = std::max(newest, number);
        old.push_back(one.name);
      }
    if (memory == nullptr && !all.memory.empty())
      if (Status s = home.forget_range(kRangeName); !s) return outcome(s);
  }
  const auto made = outcore::checkpoint(name + "." + std::to_string(newest + 1), parts, options);
  if (!made) return outcome(made.error());
  // One that somebody reads, or that the disk does not let us remove, is removed next time.
  static_cast<void>(outcore::remove_checkpoints(home.uri(), old));
  home.tidy();
  return 0;
}

// The newest checkpoint of that name, or of all names. Empty: there is no pool.
Result<std::string> newest_of(SsdPool& home, const std::string& name) {
  if (!home.is_there()) return std::string();
  const auto held = outcore::list_checkpoints(home.uri());
  if (!held) return held.error();
  std::string newest;
  uint64_t number = 0;
  for (const outcore::CheckpointInfo& one : held.value())
    if (name.empty()) {
      newest = one.name;
    } else if (const uint64_t its = number_of(one.name, name); its > number) {
      newest = one.name;
      number = its;
    }
  if (!newest.empty()) return newest;
  return Error{ENOENT, "oc_ssd_restart: " + home.uri() + " has no checkpoint" +
                           (name.empty() ? " yet" : " '" + name + "'")};
}

int go_back(Ssd& all, const std::string& name, void* memory, size_t size_bytes) {
  const std::lock_guard<std::mutex> guard(all.mutex);
  const auto where = pool(all, "oc_ssd_restart");
  if (!where) return outcome(where.error());
  if (!all.memory.empty())
    return fail(EBUSY, "oc_ssd_restart: there is memory of oc_ssd_malloc: call this first");
  SsdPool& home = *where.value();
  const auto newest = newest_of(home, name);
  if (!newest) return outcome(newest.error());
  if (memory != nullptr && !newest->empty()) {  // before anything is changed
    const auto size = size_of(home.uri(), kRangeName, newest.value());
    if (!size) return outcome(size.error());
    if (size.value() != size_bytes)
      return fail(EINVAL, "oc_ssd_restart: '" + newest.value() + "' has " +
                              std::to_string(size.value()) + " bytes of ordinary memory, not " +
                              std::to_string(size_bytes));
  }
  const auto last = outcore::restart(home.uri(), newest.value());  // reports if there is none
  if (!last) return outcome(last.error());
  const Rest rest(all);
  const auto objects = outcore::list_objects(home.uri(), newest.value());
  if (!objects) return outcome(objects.error());
  if (Status s = home.keep_only(objects.value()); !s) return outcome(s);
  if (memory == nullptr) return 0;
  return outcome(last->read(kRangeName, {static_cast<std::byte*>(memory), size_bytes}));
}

}  // namespace

void* oc_ssd_malloc(const char* name, size_t size_bytes) {
  void* memory = nullptr;
  int result = 0;
  Ssd* const all = the_ssd();
  if (all == nullptr)
    result = no_child("oc_ssd_malloc");
  else if (name == nullptr || *name == 0)
    result = fail(EINVAL, "oc_ssd_malloc: give the memory a name, by which it is found again");
  else if (size_bytes == 0)
    result = fail(EINVAL, std::string("oc_ssd_malloc: '") + name + "' would have no bytes");
  else
    result = guarded("oc_ssd_malloc", [&] { return allocate(*all, name, size_bytes, &memory); });
  if (result != 0) errno = -result;
  return memory;
}

int oc_ssd_free(void* memory) {
  if (memory == nullptr) return 0;
  Ssd* const all = the_ssd();
  if (all == nullptr) return no_child("oc_ssd_free");
  return guarded("oc_ssd_free", [&] { return release(*all, memory); });
}

int oc_ssd_checkpoint(const char* name, const void* memory, size_t size_bytes) {
  if (name == nullptr) return fail_null("oc_ssd_checkpoint", "name");
  Ssd* const all = the_ssd();
  if (all == nullptr) return no_child("oc_ssd_checkpoint");
  return guarded("oc_ssd_checkpoint", [&] { return make(*all, name, memory, size_bytes); });
}

int oc_ssd_restart(const char* name, void* memory, size_t size_bytes) {
  Ssd* const all = the_ssd();
  if (all == nullptr) return no_child("oc_ssd_restart");
  return guarded("oc_ssd_restart",
                 [&] { return go_back(*all, name == nullptr ? "" : name, memory, size_bytes); });
}
