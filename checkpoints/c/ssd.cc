// Memory that is in a program's checkpoints. See outcore/ssd.h.
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

#include "checkpoints/store/versioned_pools.h"
#include "core/c/outcome.h"
#include "core/store/uri.h"
#include "outcore/checkpoint.h"
#include "outcore/runtime.h"

using outcore::Access;
using outcore::CheckpointOptions;
using outcore::CheckpointPart;
using outcore::Error;
using outcore::MapOptions;
using outcore::Region;
using outcore::Result;
using outcore::Runtime;
using outcore::Status;
using namespace outcore::c;

namespace store = outcore::store;
namespace versioned = outcore::versioned;

namespace {

constexpr const char* kRangeName = "ordinary memory";  // of the object that holds it

struct Named {
  std::string name;
  Region region;
};

// Never ends: what is not in a checkpoint is not meant to last, and threads may go on to the end.
struct Ssd {
  std::mutex mutex;
  pid_t process = 0;
  std::unique_ptr<Runtime> runtime;
  std::map<void*, Named> memory;
};

// nullptr: a forked child.
Ssd* the_ssd() {
  static Ssd* const all = new Ssd{.process = ::getpid()};
  return all->process == ::getpid() ? all : nullptr;
}

int no_child(const char* function) {
  return fail(EPERM, std::string(function) + ": the memory is the parent's: start a new program");
}

Result<std::string> pool(const char* function) {
  const char* folder = std::getenv("OUTCORE_POOL");
  if (folder == nullptr || *folder == 0)
    return Error{ENOENT,
                 std::string(function) +
                     ": no pool to keep it in: set OUTCORE_POOL to a folder, which is made"};
  const std::string text = folder;
  return text.starts_with("versioned:") ? text : "versioned:" + text;
}

// Of an object, in a checkpoint; 0: it has none.
Result<uint64_t> size_of(const std::string& where, const std::string& name,
                         const std::string& checkpoint = {}) {
  const auto objects = outcore::list_objects(where, checkpoint);
  if (!objects) return objects.error();
  for (const outcore::CheckpointObject& object : objects.value())
    if (object.name == name) return object.size_bytes;
  return uint64_t{0};
}

bool is_pool(const std::string& where) { return outcore::list_checkpoints(where).ok(); }

int allocate(Ssd& all, const std::string& name, size_t size_bytes, void** memory) {
  const auto where = pool("oc_ssd_malloc");
  if (!where) return outcome(where.error());
  const std::lock_guard<std::mutex> guard(all.mutex);
  for (const auto& [address, named] : all.memory)
    if (named.name == name)
      return fail(EBUSY, "oc_ssd_malloc: '" + name + "' is in use: free it, or take another name");
  if (name == kRangeName)
    return fail(EINVAL,
                "oc_ssd_malloc: '" + name + "' is the name of the range of ordinary memory");
  if (is_pool(where.value())) {
    const auto held = size_of(where.value(), name);
    if (!held) return outcome(held.error());
    if (held.value() != 0 && held.value() != size_bytes)
      return fail(EINVAL, "oc_ssd_malloc: '" + name + "' has " + std::to_string(held.value()) +
                              " bytes in " + where.value() + ", not " + std::to_string(size_bytes) +
                              ": ask for as many, or another name");
  }
  if (all.runtime == nullptr) {
    auto started = Runtime::start();
    if (!started) return outcome(started.error());
    all.runtime = std::make_unique<Runtime>(std::move(started).value());
  }
  MapOptions options;
  options.access = Access::kReadWrite;
  options.size_bytes = size_bytes;
  options.may_create = true;
  auto region =
      all.runtime->map(where.value() + "?object=" + store::encode_percents(name), options);
  if (!region) return outcome(region.error());
  *memory = region->data();
  all.memory.emplace(*memory, Named{name, std::move(region).value()});
  return 0;
}

// The pool, which some memory keeps open.
Result<std::shared_ptr<versioned::Pool>> opened(const std::string& where) {
  const auto uri = store::parse_uri(where);
  if (!uri) return uri.error();
  store::VersionedPoolOptions options;
  options.folder = uri->path;
  return store::open_versioned_pool(options);
}

// Not committed: what the others hold is not of one moment.
int release(Ssd& all, void* memory) {
  const auto where = pool("oc_ssd_free");
  if (!where) return outcome(where.error());
  const std::lock_guard<std::mutex> guard(all.mutex);
  const auto found = all.memory.find(memory);
  if (found == all.memory.end())
    return fail(EINVAL, "oc_ssd_free: the address is not from oc_ssd_malloc");
  const auto home = opened(where.value());
  if (!home) return outcome(home.error());
  if (Status s = found->second.region.unmap(true); !s) return outcome(s);
  const std::string name = found->second.name;
  all.memory.erase(found);
  return outcome(home.value()->remove_object(name));
}

// Checkpoints are called NAME.NUMBER in the pool: the new one is whole before the old one goes, and
// the newest counts.
uint64_t number_of(const std::string& held, const std::string& name) {  // 0: it is no such
  uint64_t number = 0;
  if (held.size() < name.size() + 2 || !held.starts_with(name + ".")) return 0;
  const char* const first = held.data() + name.size() + 1;
  const auto parsed = std::from_chars(first, held.data() + held.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == held.data() + held.size() ? number : 0;
}

int make(Ssd& all, const std::string& name, const void* memory, size_t size_bytes) {
  const auto where = pool("oc_ssd_checkpoint");
  if (!where) return outcome(where.error());
  const std::lock_guard<std::mutex> guard(all.mutex);
  std::vector<CheckpointPart> parts;
  for (const auto& [address, named] : all.memory) parts.emplace_back(named.region);
  if (memory != nullptr)  // of which it is only read
    parts.emplace_back(kRangeName, const_cast<void*>(memory), size_bytes);
  CheckpointOptions options;
  options.pool = where.value();
  std::vector<std::string> old;
  uint64_t newest = 0;
  if (is_pool(where.value())) {
    const auto held = outcore::list_checkpoints(where.value());
    if (!held) return outcome(held.error());
    for (const outcore::CheckpointInfo& one : held.value())
      if (const uint64_t number = number_of(one.name, name); number != 0) {
        newest = std::max(newest, number);
        old.push_back(one.name);
      }
    if (memory == nullptr && !all.memory.empty()) {  // a range of another moment is none of ours
      const auto home = opened(where.value());
      if (!home) return outcome(home.error());
      if (home.value()->find(kRangeName) != nullptr)
        if (Status s = home.value()->remove_object(kRangeName); !s) return outcome(s);
    }
  }
  const auto made = outcore::checkpoint(name + "." + std::to_string(newest + 1), parts, options);
  if (!made) return outcome(made.error());
  // One that somebody reads, or that the disk keeps us from removing, goes next time.
  static_cast<void>(outcore::remove_checkpoints(where.value(), old));
  return 0;
}

int go_back(Ssd& all, const std::string& name, void* memory, size_t size_bytes) {
  const auto where = pool("oc_ssd_restart");
  if (!where) return outcome(where.error());
  const std::lock_guard<std::mutex> guard(all.mutex);
  if (!all.memory.empty())
    return fail(EBUSY, "oc_ssd_restart: there is memory of oc_ssd_malloc: call this first");
  const auto held = outcore::list_checkpoints(where.value());
  std::string newest;  // of that name, if one is given
  uint64_t number = 0;
  for (const outcore::CheckpointInfo& one :
       held ? held.value() : std::vector<outcore::CheckpointInfo>())
    if (name.empty()) {
      newest = one.name;
    } else if (const uint64_t its = number_of(one.name, name); its > number) {
      newest = one.name;
      number = its;
    }
  if (held && newest.empty())
    return fail(ENOENT, "oc_ssd_restart: " + where.value() + " has no checkpoint" +
                            (name.empty() ? " yet" : " '" + name + "'"));
  if (memory != nullptr && held) {  // before anything happens
    const auto size = size_of(where.value(), kRangeName, newest);
    if (!size) return outcome(size.error());
    if (size.value() != size_bytes)
      return fail(EINVAL, "oc_ssd_restart: '" + newest + "' has " + std::to_string(size.value()) +
                              " bytes of ordinary memory, not " + std::to_string(size_bytes));
  }
  const auto last = outcore::restart(where.value(), newest);  // which says so if there is no pool
  if (!last) return outcome(last.error());
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
