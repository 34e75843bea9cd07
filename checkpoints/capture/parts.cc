#include "checkpoints/capture/parts.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/region/address_map.h"

namespace outcore {

namespace checkpoints {
namespace {

constexpr uint64_t kMemoryBytesMax = uint64_t{1} << 47;  // as many as a process has addresses

// The target of the regions.
Result<std::shared_ptr<CheckpointTarget>> target_of_regions(const std::string& attempted,
                                                            std::span<const CheckpointPart> parts) {
  std::vector<const paging::PageCache*> caches;
  for (const CheckpointPart& part : parts)
    if (part.region() != nullptr && part.region()->is_mapped())
      caches.push_back(CheckpointAccess::impl(*part.region())->cache);
  auto target = target_of(caches);
  if (!target || target.value() != nullptr) return target;
  return Error{EINVAL, attempted +
                           ": no part is a region of a versioned: pool or an rbd:// image: name "
                           "a pool that is to have it (options.pool)"};
}

}  // namespace

Result<Parts> look_up(const std::string& attempted, std::span<const CheckpointPart> parts,
                      const CheckpointOptions& options) {
  const auto wrong = [&](const std::string& why) { return Error{EINVAL, attempted + ": " + why}; };
  if (parts.empty()) return wrong("it would have no part");
  auto target =
      options.pool.empty() ? target_of_regions(attempted, parts) : open_target(options.pool);
  if (!target) return target.error();
  Parts found;
  found.target = std::move(target).value();
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
      if (!part.region()->is_mapped())
        return wrong(part.member() == nullptr
                         ? "a region that is not mapped is a part"
                         : "the heap " + part.member()->name_of() +
                               " is closed, or the kernel maps it (paging = kKernel), which cannot "
                               "hold its pages at one moment: open it in a runtime");
      const Region::Impl* const impl = CheckpointAccess::impl(*part.region());
      if (Status s = impl->runtime->check_alive(attempted); !s) return s.error();
      if (found.runtime != nullptr && found.runtime != impl->runtime)
        return wrong("its regions are of two runtimes, whose pages cannot be held together");
      found.runtime = impl->runtime;
      found.caches.push_back(impl->cache);
      Store& store = *impl->cache->store.load();
      if (found.target->has(store)) {
        const std::string own = found.target->object_of(store);
        if (!name.empty() && name != own && !found.target->may_rename())
          return wrong("the object '" + own + "' cannot be named '" + name +
                       "': leave the name out");
        if (name.empty()) name = own;
        if (part.member() != nullptr)
          found.heaps.push_back({part.member(), name, false, impl->cache});
        const auto is_it = [&](const CheckpointTarget::Member& member) {
          return member.store == &store;
        };
        if (std::any_of(found.members.begin(), found.members.end(), is_it))
          continue;  // two regions may belong to one object
        found.members.push_back({name, &store});
        if (!names.insert(name).second) return wrong("two parts are named '" + name + "'");
        continue;
      }
      if (name.empty())
        return wrong("the region of " + impl->uri +
                     " is not of it, and is copied: give the copy a name");
      found.foreign.push_back({name, impl->cache, impl->uri});
      if (part.member() != nullptr) found.heaps.push_back({part.member(), name, true, impl->cache});
    }
    if (name.empty() || name.size() > 255) return wrong("names of parts have 1 to 255 bytes");
    if (!names.insert(name).second) return wrong("two parts are named '" + name + "'");
  }
  return found;
}

}  // namespace checkpoints
}  // namespace outcore
