// Boxes of arrays that are kept in tiles, compressed or not. See arrays.h.
#include "arrays/container/arrays_impl.h"
#include "core/base/assert.h"

namespace outcore {

using arrays::Entry;
using arrays::Runs;

namespace {

// Calls act(offset of the tile, its runs) for each tile that the box touches; the first error ends
// it.
template <typename Act>
Status each_tile(const Entry& entry, const Dims& shape, const Dims& tiles, const Dims& at,
                 const Dims& box, const Act& act) {
  OC_ASSERT(!entry.tiles.empty() && entry.compress.empty());
  const uint64_t tile_bytes = arrays::bytes_of_tile(entry);
  Status s;
  arrays::for_each_tile(entry.type.size_bytes, shape, tiles, at, box,
                        [&](uint64_t number, const Runs& runs) {
                          s = act(entry.offset + number * tile_bytes, runs);
                          return !s.ok();
                        });
  return s;
}

// The compressed tiles of an entry, for one call. `may_change`: of a box others may write while
// this process reads or writes it. `impl`: Arrays::Impl.
template <typename Impl, typename Act>
Status with_packed(const Impl& impl, const Entry& entry, bool may_change, const Act& act) {
  OC_ASSERT(!entry.compress.empty());
  const auto packer = impl.packer_of(entry);
  if (!packer) return packer.status();
  return act(arrays::PackedTiles(*impl.storage, entry, arrays::in_rows(entry, entry.dims),
                                 arrays::in_rows(entry, entry.tiles), *packer.value(),
                                 may_change ? &impl.tile_mutexes : nullptr,
                                 may_change && impl.together.size > 1));
}

}  // namespace

Result<std::shared_ptr<const packing::Packer>> Arrays::Impl::packer_of(const Entry& entry) const {
  OC_CHECK(!entry.compress.empty());
  const uint64_t tile_bytes = arrays::bytes_of_tile(entry);
  const std::lock_guard<std::mutex> guard(packers_mutex);
  std::shared_ptr<const packing::Packer>& packer = packers[{entry.compress, tile_bytes}];
  if (packer != nullptr) return packer;
  const auto packing = packing::Packing::parse(entry.compress);
  if (!packing) return packing.error();
  auto made = packing::Packer::make(packing.value(), tile_bytes);
  if (!made) return made.error();
  return packer = std::move(made).value();
}

Status Arrays::Impl::check_packer(const std::string& attempted, const Entry& entry) const {
  if (entry.compress.empty()) return {};
  const auto packer = packer_of(entry);
  return packer ? Status() : Error{packer.code(), attempted + ": " + packer.message()};
}

Status Arrays::Impl::write_tiles(const Entry& entry, const std::byte* from, const Dims& at,
                                 const Dims& box) const {
  OC_CHECK(entry.tiles.size() == entry.dims.size());
  if (!entry.compress.empty())
    return with_packed(*this, entry, true, [&](const arrays::PackedTiles& packed) {
      return packed.write(from, at, box);
    });
  const Dims shape = arrays::in_rows(entry, entry.dims),
             tiles = arrays::in_rows(entry, entry.tiles);
  return each_tile(entry, shape, tiles, at, box, [&](uint64_t offset, const Runs& runs) {
    return storage->write_runs(offset, runs, from);
  });
}

Status Arrays::Impl::read_tiles(const Entry& entry, std::byte* into, const Dims& at,
                                const Dims& box) const {
  OC_CHECK(entry.tiles.size() == entry.dims.size());
  if (!entry.compress.empty())  // of a session this process or others may change it
    return with_packed(*this, entry, entry.session != 0, [&](const arrays::PackedTiles& packed) {
      return packed.read(into, at, box);
    });
  const Dims shape = arrays::in_rows(entry, entry.dims),
             tiles = arrays::in_rows(entry, entry.tiles);
  return each_tile(entry, shape, tiles, at, box, [&](uint64_t offset, const Runs& runs) {
    return storage->read_runs(offset, runs, into);
  });
}

}  // namespace outcore
