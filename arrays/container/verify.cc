// Arrays::verify: compares finished arrays with their checksums.
#include <algorithm>
#include <cerrno>

#include "arrays/container/arrays_impl.h"
#include "core/base/assert.h"
#include "core/os/cancel_block.h"

namespace outcore {

using arrays::BlockSum;
using arrays::BlockSums;
using arrays::Entry;

namespace {

class Verification {
 public:
  Verification(const Arrays::Impl& impl, const std::function<void(const ArrayDamage&)>& on_damage,
               const std::function<bool(uint64_t)>& goes_on)
      : impl_(impl), on_damage_(on_damage), goes_on_(goes_on) {}

  void check(const Entry& entry) {
    ++found_.arrays;
    if (entry.is_inline())
      found_.bytes += entry.value.size();  // open() has compared the checksum of its record
    else if (!entry.compress.empty())
      check_tiles(entry);
    else if (entry.block_bytes == 0 || entry.are_sums_open)
      found_.unchecked.push_back(entry.name);
    else
      check_blocks(entry);
  }
  void tell_of_container(const std::string& where) {
    ++found_.damages;
    if (on_damage_) on_damage_({"", where});
  }
  bool is_cancelled() const { return is_cancelled_; }
  ArraysCheck&& found() && { return std::move(found_); }

 private:
  void tell(const Entry& entry, const std::string& where) {
    ++found_.damages;
    if (on_damage_) on_damage_({entry.name, where});
  }
  // False: stop.
  bool advance(uint64_t bytes) {
    found_.bytes += bytes;
    is_cancelled_ = is_cancelled_ || (goes_on_ && !goes_on_(found_.bytes));
    return !is_cancelled_;
  }
  void check_blocks(const Entry& entry);
  void check_tiles(const Entry& entry);

  const Arrays::Impl& impl_;
  const std::function<void(const ArrayDamage&)>& on_damage_;
  const std::function<bool(uint64_t)>& goes_on_;
  bool is_cancelled_ = false;
  ArraysCheck found_;
};

void Verification::check_blocks(const Entry& entry) {
  BlockSums sums(entry);
  const std::span<BlockSum> blocks = sums.blocks();
  const uint64_t bytes = arrays::bytes_of(entry), at = arrays::sums_offset(entry);
  if (Status s = impl_.storage->read(at, std::as_writable_bytes(blocks)); !s)
    return tell(entry, "its checksums cannot be read: " + s.message());
  for (uint64_t b = 0; b < blocks.size(); ++b) {
    const uint64_t first = b * entry.block_bytes;
    const uint64_t end = std::min(first + entry.block_bytes, bytes);
    OC_ASSERT(first < end);
    const std::string which = "bytes " + std::to_string(first) + " to " + std::to_string(end - 1) +
                              ", at " + std::to_string(entry.offset + first) + " of " +
                              impl_.storage->uri();
    const auto sum = impl_.sum_of_block(entry, b);
    if (!sum)
      tell(entry, which + ", cannot be read: " + sum.message());
    else if (blocks[b].cover != arrays::mark_of(blocks[b].sum, b))
      tell(entry,
           "the checksum of " + which + ", at " + std::to_string(at + arrays::sums_bytes(b)));
    else if (sum.value() != blocks[b].sum)
      tell(entry, which);
    if (!advance(end - first)) return;
  }
}

// Checks one tile after the other. What is reported is what a load would report.
void Verification::check_tiles(const Entry& entry) {
  if (std::count(entry.dims.begin(), entry.dims.end(), uint64_t{0}) != 0) return;  // no tiles
  std::vector<std::byte> bytes;
  Dims at(entry.dims.size(), 0), box(entry.dims.size());
  for (;;) {
    uint64_t size = entry.type.size_bytes;
    for (size_t d = 0; d < box.size(); ++d) {
      box[d] = std::min(entry.tiles[d], entry.dims[d] - at[d]);
      size *= box[d];
    }
    bytes.resize(size);
    if (Status s = impl_.read_box(entry, bytes.data(), at, box); !s)
      tell(entry, "the tile at " + arrays::text_of(at) + ": " + s.message());
    if (!advance(size)) return;
    size_t d = box.size();
    for (;;) {
      if (d == 0) return;
      --d;
      at[d] += entry.tiles[d];
      if (at[d] < entry.dims[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

// Another process may be writing them just now, unless the catalog is locked.
Result<std::string> Arrays::Impl::header_damage() const {
  if (session != 0) return catalog->find_header_damage();
  if (Status s = storage->lock(arrays::Lease::kCatalog, false, true); !s) return s.error();
  auto found = catalog->find_header_damage();
  storage->unlock(arrays::Lease::kCatalog);
  return found;
}

Result<ArraysCheck> Arrays::verify(const std::string& name,
                                   const std::function<void(const ArrayDamage&)>& on_damage,
                                   const std::function<bool(uint64_t)>& goes_on) const {
  const os::CancelBlock uncancelled;
  const std::string attempted = "verify " + (name.empty() ? uri() : "'" + name + "'");
  const std::shared_lock<std::shared_mutex> travelling(impl_->traffic);
  if (Status s = impl_->check_open(attempted); !s) return s.error();
  std::vector<Entry> entries;
  std::string of_header;
  {
    const Impl::CatalogLock lock(*impl_);
    if (!lock.status().ok()) return lock.status().error();
    if (name.empty()) {
      auto found = impl_->header_damage();
      if (!found) return Error{found.code(), attempted + ": " + found.message()};
      of_header = std::move(found).value();
    }
    for (const auto& [id, entry] : impl_->catalog->entries())
      if (entry.session == 0 && (name.empty() || entry.name == name)) entries.push_back(entry);
    if (!name.empty() && entries.empty()) return impl_->no_such(attempted, name);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  Verification verification(*impl_, on_damage, goes_on);
  for (const Entry& entry : entries) {
    verification.check(entry);
    if (verification.is_cancelled()) return Error{ECANCELED, attempted + ": it was ended"};
  }
  if (!of_header.empty()) verification.tell_of_container(of_header);
  return std::move(verification).found();
}

}  // namespace outcore
