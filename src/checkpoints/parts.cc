#include "checkpoints/parts.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "region/address_map.h"
#include "store/versioned_pools.h"

namespace outcore {

CheckpointPart::CheckpointPart(PersistentCore& heap, std::string name)
    : name_(std::move(name)), region_(&heap.region()), heap_(&heap) {}

namespace checkpoints {
namespace {

constexpr uint64_t kMemoryBytesMax = uint64_t{1} << 47;  // addresses that a process has

// The first pool that the regions are on.
Result<std::shared_ptr<versioned::Pool>> pool_of_regions(const std::string& attempted,
                                                         std::span<const CheckpointPart> parts) {
  for (const CheckpointPart& part : parts) {
    if (part.region() == nullptr || !part.region()->is_mapped()) continue;
    Store* const store = CheckpointAccess::impl(*part.region())->space->store.load();
    if (auto* of_pool = dynamic_cast<store::VersionedStore*>(store)) return of_pool->share_pool();
  }
  return Error{EINVAL, attempted +
                           ": no part is a region of a versioned: pool: name one that is "
                           "to have it (options.pool)"};
}

}  // namespace

Result<std::shared_ptr<versioned::Pool>> pool_named(const std::string& text) {
  const auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  if (uri->scheme != "versioned" || uri->path.empty())
    return Error{EINVAL, "'" + uri->text + "' holds no checkpoints: write versioned:FOLDER"};
  store::VersionedPoolOptions options;
  options.folder = uri->path;
  options.may_create = true;
  if (const auto chunk = uri->bytes_of("chunk", 0); !chunk)
    return chunk.error();
  else
    options.chunk_bytes = static_cast<uint32_t>(chunk.value());
  return store::open_versioned_pool(options);
}

Result<Parts> look_up(const std::string& attempted, std::span<const CheckpointPart> parts,
                      const CheckpointOptions& options) {
  const auto wrong = [&](const std::string& why) { return Error{EINVAL, attempted + ": " + why}; };
  if (parts.empty()) return wrong("it would have no part");
  auto pool = options.pool.empty() ? pool_of_regions(attempted, parts) : pool_named(options.pool);
  if (!pool) return pool.error();
  Parts found;
  found.pool = std::move(pool).value();
  std::set<std::string> names;
  uint64_t memory_bytes = 0;
  for (const CheckpointPart& part : parts) {
    std::string name = part.name();
    if (part.region() == nullptr) {
      if (part.size_bytes() == 0) return wrong("the memory '" + name + "' has no bytes");
      const auto address = reinterpret_cast<uintptr_t>(part.memory());
      memory_bytes += part.size_bytes();
      if (address == 0 || part.size_bytes() > kMemoryBytesMax || memory_bytes > kMemoryBytesMax ||
          address + part.size_bytes() < address)
        return wrong("there are no " + std::to_string(part.size_bytes()) +
                     " bytes of memory at the address of '" + name + "'");
      if (region::AddressMap::instance().overlaps(part.memory(), part.size_bytes()))
        return wrong("the memory '" + name + "' lies in a region: make the region a part");
      found.memory.push_back({name, {part.memory(), part.size_bytes()}});
    } else {
      if (!part.region()->is_mapped()) return wrong("a region that is not mapped is a part");
      const Region::Impl* const impl = CheckpointAccess::impl(*part.region());
      if (Status s = impl->runtime->check_alive(attempted); !s) return s.error();
      if (found.runtime != nullptr && found.runtime != impl->runtime)
        return wrong("its regions are of two runtimes, whose pages cannot be held together");
      found.runtime = impl->runtime;
      found.spaces.push_back(impl->space);
      auto* const store = dynamic_cast<store::VersionedStore*>(impl->space->store.load());
      if (store != nullptr && store->share_pool() == found.pool) {
        if (!name.empty() && name != store->object().name())
          return wrong("the object '" + store->object().name() + "' cannot be named '" + name +
                       "': leave the name out");
        if (part.heap() != nullptr)
          found.heaps.push_back(
              {CheckpointAccess::impl(*part.heap()), store->object().name(), false});
        names.insert(store->object().name());  // two regions may be of one object
        continue;
      }
      if (name.empty())
        return wrong("the region of " + impl->uri +
                     " is not of the pool, and is copied: give the copy a name");
      found.foreign.push_back({name, impl->space, impl->uri});
      if (part.heap() != nullptr)
        found.heaps.push_back({CheckpointAccess::impl(*part.heap()), name, true});
    }
    if (name.empty() || name.size() > 255) return wrong("names of parts have 1 to 255 bytes");
    if (!names.insert(name).second) return wrong("two parts are named '" + name + "'");
  }
  return found;
}

}  // namespace checkpoints
}  // namespace outcore
