#include "core/tests/sim/sim_kernel.h"

#include "core/tests/sim/sim_frames.h"

namespace outcore::sim {

using base::kSystemPage;

void SimKernel::map(const Mapping& mapping) {
  // As MAP_FIXED: replaces what is mapped there, which must show nothing any more.
  for (uint64_t at = 0; at < mapping.size_bytes; at += kSystemPage) {
    const Mapping* before = find(mapping.address + at);
    if (before == nullptr) continue;
    const auto i = static_cast<uint64_t>(mapping.address + at - before->address) / kSystemPage;
    fibers.require(!before->entry[i].is_present, "a range is mapped over a page that is shown", at);
  }
  unmap(mapping.address, mapping.size_bytes);
  Mapping fresh = mapping;
  fresh.entry.assign(mapping.size_bytes / kSystemPage, {});
  mappings_[mapping.address] = fresh;
}

void SimKernel::unmap(std::byte* address, uint64_t size_bytes) {
  for (auto i = mappings_.begin(); i != mappings_.end();) {
    const bool is_apart = i->second.end() <= address || i->second.address >= address + size_bytes;
    if (!is_apart)
      fibers.require(i->second.address >= address && i->second.end() <= address + size_bytes,
                     "a mapping is unmapped in part");
    i = is_apart ? std::next(i) : mappings_.erase(i);
  }
}

void SimKernel::divide(std::byte* address) {
  Mapping* left = find(address);
  if (left == nullptr || left->address == address) return;
  const auto bytes = static_cast<uint64_t>(address - left->address);
  const auto at = left->entry.begin() + static_cast<ptrdiff_t>(bytes / kSystemPage);
  Mapping right = *left;
  right.address = address;
  right.offset += bytes;
  right.size_bytes -= bytes;
  right.entry.assign(at, left->entry.end());
  left->size_bytes = bytes;
  left->entry.erase(at, left->entry.end());
  mappings_[address] = std::move(right);
}

Mapping* SimKernel::find(const std::byte* address) {
  auto i = mappings_.upper_bound(address);
  if (i == mappings_.begin()) return nullptr;
  --i;
  return address < i->second.end() ? &i->second : nullptr;
}

PageEntry& SimKernel::entry(const std::byte* address, const SimFrames* owner) {
  Mapping* mapping = find(address);
  fibers.require(mapping != nullptr, "frames are asked for addresses that are not mapped",
                 reinterpret_cast<uint64_t>(address));
  fibers.require(mapping->owner == owner, "frames are asked for addresses of others");
  return mapping->entry[static_cast<uint64_t>(address - mapping->address) / kSystemPage];
}

std::byte* SimKernel::touch(std::byte* address, bool is_write) {
  Mapping* mapping = find(address);
  fibers.require(mapping != nullptr, "a program touches what is not mapped");
  const auto at = static_cast<uint64_t>(address - mapping->address);
  fibers.require(!is_write || mapping->is_writable, "a program writes to a read-only view");
  return mapping->owner->touch(mapping->entry[at / kSystemPage], mapping->offset + at, is_write);
}

std::byte* SimKernel::touch_pinned(std::byte* address) {
  Mapping* mapping = find(address);
  fibers.require(mapping != nullptr, "pinned memory is not mapped");
  const auto at = static_cast<uint64_t>(address - mapping->address);
  const PageEntry& entry = mapping->entry[at / kSystemPage];
  fibers.require(entry.is_present, "a pinned page is not there", mapping->offset + at);
  fibers.require(!entry.is_protected || !mapping->is_writable || mapping->owner->is_async(),
                 "a pinned page is write-protected: the kernel's write fails",
                 mapping->offset + at);
  return mapping->owner->bytes_at(mapping->offset + at);
}

void SimKernel::memory_changed(int64_t bytes) {
  resident_bytes_ += static_cast<uint64_t>(bytes);
  if (bytes > 0 && on_memory) on_memory(resident_bytes_);
}

}  // namespace outcore::sim
