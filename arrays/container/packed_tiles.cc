#include "arrays/container/packed_tiles.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "arrays/container/workers.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::arrays {
namespace {

constexpr size_t kTasksAtOnce = 256;
constexpr uint64_t kDefaultTileBytes = 1 << 20;

// At the beginning of a slot; zeros: the tile was never stored. The Packer's value follows.
struct SlotHead {
  uint64_t value_bytes = 0;
  uint64_t inverse = 0;  // ~value_bytes, so that a head damaged to zeros is noticed
};
static_assert(sizeof(SlotHead) == 16);

uint64_t bytes_of_tile(const Dims& tiles, uint32_t element_bytes) {
  uint64_t bytes = element_bytes;
  for (const uint64_t n : tiles) bytes *= n;
  return bytes;
}

bool is_shuffled(const ArrayType& type) {
  const char kind = type.name.size() > 1 ? type.name[1] : '\0';
  const bool is_number = type.name[0] == '<' && (kind == 'f' || kind == 'i' || kind == 'u');
  return is_number || (type.name[0] == '<' && kind == 'c');
}

void shuffle(const std::byte* from, uint64_t bytes, uint32_t element_bytes, std::byte* into) {
  OC_CHECK(element_bytes != 0 && bytes % element_bytes == 0);
  const uint64_t count = bytes / element_bytes;
  for (uint32_t b = 0; b < element_bytes; ++b)
    for (uint64_t i = 0; i < count; ++i) *into++ = from[i * element_bytes + b];
}

void unshuffle(const std::byte* from, uint64_t bytes, uint32_t element_bytes, std::byte* into) {
  OC_CHECK(element_bytes != 0 && bytes % element_bytes == 0);
  const uint64_t count = bytes / element_bytes;
  for (uint32_t b = 0; b < element_bytes; ++b)
    for (uint64_t i = 0; i < count; ++i) into[i * element_bytes + b] = *from++;
}

uint64_t value_bytes_max(uint64_t tile_bytes) { return packing::Packer::kHeadBytes + tile_bytes; }

// One process writes a tile at a time, and in it one thread.
class TileLock {
 public:
  TileLock(ContainerStorage& storage, uint64_t offset, TileMutexes* mutexes, uint64_t number,
           bool is_shared)
      : storage_(storage), offset_(offset), is_shared_(is_shared) {
    OC_ASSERT(!is_shared || mutexes != nullptr);
    if (mutexes != nullptr)
      guard_ = std::unique_lock<std::mutex>((*mutexes)[number % mutexes->size()]);
    if (is_shared_) status_ = storage_.lock_range(offset_);
  }
  ~TileLock() {
    if (is_shared_ && status_.ok()) storage_.unlock_range(offset_);
  }
  TileLock(const TileLock&) = delete;
  TileLock& operator=(const TileLock&) = delete;
  const Status& status() const { return status_; }

 private:
  ContainerStorage& storage_;
  const uint64_t offset_;
  const bool is_shared_;
  std::unique_lock<std::mutex> guard_;
  Status status_;
};

}  // namespace

uint64_t slot_bytes(uint64_t tile_bytes) {
  return base::round_up(sizeof(SlotHead) + value_bytes_max(tile_bytes), base::kSystemPage);
}

Dims default_tiles(const Dims& dims, uint32_t element_bytes) {
  Dims tiles = dims;
  for (uint64_t& n : tiles) n = std::max<uint64_t>(n, 1);
  for (;;) {
    uint64_t bytes = element_bytes;
    for (const uint64_t n : tiles)
      if (__builtin_mul_overflow(bytes, n, &bytes)) bytes = UINT64_MAX / 2;
    const auto longest = std::max_element(tiles.begin(), tiles.end());
    if (bytes <= kDefaultTileBytes || longest == tiles.end() || *longest == 1) return tiles;
    *longest = (*longest + 1) / 2;
  }
}

// Buffers of one thread.
struct PackedTiles::Space {
  Space(const packing::Packer& packer, uint64_t tile_bytes)
      : tile(tile_bytes),
        other(tile_bytes),
        value(base::round_up(sizeof(SlotHead) + packer.value_bytes_max(), base::kSystemPage)),
        memory(std::max(packer.pack_space_bytes(), packer.unpack_space_bytes()) +
               packing::Packer::kAlignment) {
    void* at = memory.data();
    size_t left = memory.size();
    const size_t need = left - packing::Packer::kAlignment;
    work = static_cast<std::byte*>(std::align(packing::Packer::kAlignment, need, at, left));
    OC_CHECK(work != nullptr);
  }
  std::vector<std::byte> tile, other, value, memory;
  std::byte* work = nullptr;
};

PackedTiles::PackedTiles(ContainerStorage& storage, const Entry& entry, Dims shape, Dims tiles,
                         const packing::Packer& packer, TileMutexes* mutexes, bool is_shared)
    : storage_(storage),
      name_(entry.name),
      offset_(entry.offset),
      element_bytes_(entry.type.size_bytes),
      shape_(std::move(shape)),
      tiles_(std::move(tiles)),
      packer_(packer),
      tile_bytes_(bytes_of_tile(tiles_, element_bytes_)),
      slot_bytes_(slot_bytes(tile_bytes_)),
      is_shuffled_(is_shuffled(entry.type)),
      mutexes_(mutexes),
      is_shared_(is_shared) {}

uint64_t PackedTiles::used_bytes(uint64_t number) const {
  uint64_t bytes = element_bytes_;
  for (size_t d = shape_.size(); d-- > 0;) {
    const uint64_t across = (shape_[d] + tiles_[d] - 1) / tiles_[d];
    const uint64_t first = number % across * tiles_[d];
    bytes *= std::min(tiles_[d], shape_[d] - first);
    number /= across;
  }
  OC_CHECK(number == 0);  // otherwise there is no such tile
  return bytes;
}

// Calls act(task, space) for each tile of the box; the first error ends it.
template <typename Each>
Status PackedTiles::each(const Dims& at, const Dims& box, const Each& act) const {
  std::vector<Task> tasks;
  Status first;
  const auto work_off = [&] {
    std::atomic<size_t> next{0};
    std::mutex mutex;
    const auto work = [&]() noexcept {
      Status s;
      try {
        Space space(packer_, tile_bytes_);
        for (size_t i = next++; i < tasks.size() && s.ok(); i = next++) s = act(tasks[i], space);
      } catch (const std::bad_alloc&) {
        s = Error{ENOMEM, "there is no memory for tiles of " + base::format_bytes(tile_bytes_)};
      }
      if (s.ok()) return;
      next = tasks.size();
      const std::lock_guard<std::mutex> guard(mutex);
      if (first.ok()) first = s;
    };
    run_by_workers(std::min<uint64_t>({tasks.size(), kWorkersMax,
                                       std::max(1u, std::thread::hardware_concurrency())}),
                   work);
    tasks.clear();
    return !first.ok();
  };
  for_each_tile(element_bytes_, shape_, tiles_, at, box, [&](uint64_t number, const Runs& runs) {
    tasks.push_back({number, runs});
    return tasks.size() == kTasksAtOnce && work_off();
  });
  if (first.ok() && !tasks.empty()) work_off();
  return first;
}

Status PackedTiles::write(const std::byte* from, const Dims& at, const Dims& box) const {
  return each(at, box,
              [&](const Task& task, Space& space) { return write_tile(task, from, space); });
}

Status PackedTiles::read(std::byte* into, const Dims& at, const Dims& box) const {
  return each(at, box, [&](const Task& task, Space& space) {
    {
      const TileLock lock(storage_, place(task.number), mutexes_, task.number, is_shared_);
      if (!lock.status().ok()) return lock.status();
      if (Status s = read_tile(task.number, space); !s) return s;
    }
    for_each_run(task.runs, [&](uint64_t there, uint64_t here) {
      std::memcpy(into + here, space.tile.data() + there, task.runs.run_bytes);
      return false;
    });
    return Status();
  });
}

Status PackedTiles::write_tile(const Task& task, const std::byte* from, Space& space) const {
  const TileLock lock(storage_, place(task.number), mutexes_, task.number, is_shared_);
  if (!lock.status().ok()) return lock.status();
  SlotHead old;
  if (Status s = storage_.read(place(task.number), std::as_writable_bytes(std::span(&old, 1))); !s)
    return s;
  OC_ASSERT(task.runs.bytes() <= used_bytes(task.number));
  if (task.runs.bytes() == used_bytes(task.number))
    std::fill(space.tile.begin(), space.tile.end(), std::byte{0});
  else if (Status s = read_tile(task.number, space); !s)
    return s;
  for_each_run(task.runs, [&](uint64_t there, uint64_t here) {
    std::memcpy(space.tile.data() + there, from + here, task.runs.run_bytes);
    return false;
  });
  const std::byte* plain = space.tile.data();
  if (is_shuffled_) {
    shuffle(plain, tile_bytes_, element_bytes_, space.other.data());
    plain = space.other.data();
  }
  SlotHead head;
  head.value_bytes = packer_.pack(task.number, plain, space.work, space.value.data() + sizeof head);
  OC_CHECK(head.value_bytes != 0 && head.value_bytes <= packer_.value_bytes_max());
  head.inverse = ~head.value_bytes;
  std::memcpy(space.value.data(), &head, sizeof head);
  const uint64_t bytes = sizeof head + head.value_bytes;
  OC_CHECK(bytes <= slot_bytes_ && bytes <= space.value.size());
  if (Status s = storage_.write(place(task.number), std::span(space.value).first(bytes)); !s)
    return s;
  const uint64_t end = base::round_up(bytes, base::kSystemPage);
  const uint64_t old_end = std::min(
      base::round_up(sizeof head + std::min(old.value_bytes, slot_bytes_), base::kSystemPage),
      slot_bytes_);
  if (old_end <= end) return {};
  return storage_.release(place(task.number) + end, old_end - end);
}

// Reads and unpacks the tile into space.tile.
Status PackedTiles::read_tile(uint64_t number, Space& space) const {
  const auto damaged = [&] {
    return Error{EIO, storage_.uri() + " is damaged: tile " + std::to_string(number) + " of '" +
                          name_ + "': go back to a copy of it"};
  };
  SlotHead head;
  const uint64_t first = std::min<uint64_t>(base::kSystemPage, slot_bytes_);
  OC_ASSERT(first <= space.value.size());
  if (Status s = storage_.read(place(number), std::span(space.value).first(first)); !s) return s;
  std::memcpy(&head, space.value.data(), sizeof head);
  if (head.value_bytes == 0 && head.inverse == 0) {
    std::fill(space.tile.begin(), space.tile.end(), std::byte{0});
    return {};
  }
  const uint64_t bytes = sizeof head + head.value_bytes;
  if (head.inverse != ~head.value_bytes || head.value_bytes > packer_.value_bytes_max())
    return damaged();
  OC_CHECK(bytes <= space.value.size());
  if (bytes > first)
    if (Status s = storage_.read(place(number) + first,
                                 std::span(space.value).subspan(first, bytes - first));
        !s)
      return s;
  std::byte* const plain = is_shuffled_ ? space.other.data() : space.tile.data();
  const std::span<const std::byte> value(space.value.data() + sizeof head, head.value_bytes);
  if (!packer_.unpack(number, value, space.work, plain)) return damaged();
  if (is_shuffled_) unshuffle(plain, tile_bytes_, element_bytes_, space.tile.data());
  return {};
}

}  // namespace outcore::arrays
