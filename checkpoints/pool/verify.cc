// How a pool is verified: every block that a checkpoint or the last commit needs is read once.
#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "checkpoints/pool/pool.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {
namespace {

constexpr size_t kVerifyBufferBytes = 4 << 20;
constexpr size_t kVerifyTransferBytesMax = 256 << 10;

// One verification of several snapshots.
class Verification {
 public:
  explicit Verification(size_t bad_max) : bad_max_(bad_max) {}
  bool open() { return buffer_.reserve(kVerifyBufferBytes); }

  void look_through(Snapshot& snapshot, const std::string& checkpoint) {
    for (const auto& numbered : snapshot.objects()) {
      const StateObject& object = numbered.second;
      object.map->for_each(0, UINT64_MAX, [&](uint64_t chunk, Entry entry) {
        if (bad_.size() >= bad_max_) return;
        if (const auto known = bad_blocks_.find(entry.block); known != bad_blocks_.end())
          bad_.push_back({object.name, checkpoint, chunk, known->second});
        else if (!is_seen(entry.block))
          wanted_.push_back({chunk, entry});
        if (wanted_.size() * snapshot.chunk_bytes() >= kVerifyBufferBytes)
          read(snapshot, object, checkpoint);
      });
      read(snapshot, object, checkpoint);
    }
  }
  std::vector<BadChunk>& bad() { return bad_; }

 private:
  struct Wanted {
    uint64_t chunk;
    Entry entry;
  };

  bool is_seen(uint32_t block) {
    if (seen_.size() <= block / 64)
      seen_.resize(std::max<size_t>(block / 64 + 1, seen_.size() * 2));
    uint64_t& word = seen_[block / 64];
    const bool was = (word >> block % 64 & 1) != 0;
    word |= uint64_t{1} << block % 64;
    return was;
  }

  void read(Snapshot& snapshot, const StateObject& object, const std::string& checkpoint) {
    const uint64_t chunk_bytes = snapshot.chunk_bytes();
    OC_CHECK(wanted_.size() * chunk_bytes <= kVerifyBufferBytes);
    std::vector<StoreRequest> transfers;
    std::vector<size_t> transfer_of;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      std::byte* const into = buffer_.begin() + i * chunk_bytes;
      const uint64_t place = wanted_[i].entry.block * chunk_bytes;
      if (!transfers.empty() && transfers.back().offset + transfers.back().size_bytes == place &&
          transfers.back().size_bytes < kVerifyTransferBytesMax)
        transfers.back().size_bytes += chunk_bytes;
      else
        transfers.push_back({place, into, chunk_bytes, false, 0});
      transfer_of.push_back(transfers.size() - 1);
    }
    snapshot.data().transfer(transfers);
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const std::span<std::byte> bytes(buffer_.begin() + i * chunk_bytes, chunk_bytes);
      const Entry entry = wanted_[i].entry;
      int error = transfers[transfer_of[i]].result;
      // Of blocks that were read together only those that are bad themselves are reported.
      if (error != 0) error = snapshot.data().read(entry.block * chunk_bytes, bytes);
      if (error == 0 && checksum_of(bytes) == entry.sum) continue;
      const std::string why =
          "data at offset " + std::to_string(entry.block * chunk_bytes) + ": " +
          (error == 0 ? "it is not what was written" : ::strerrordesc_np(-error));
      bad_blocks_[entry.block] = why;
      if (bad_.size() < bad_max_) bad_.push_back({object.name, checkpoint, wanted_[i].chunk, why});
    }
    wanted_.clear();
  }

  const size_t bad_max_;
  MappedArray<std::byte> buffer_;
  std::vector<uint64_t> seen_;
  std::unordered_map<uint32_t, std::string> bad_blocks_;
  std::vector<Wanted> wanted_;
  std::vector<BadChunk> bad_;
};

}  // namespace

Result<std::vector<BadChunk>> Pool::verify(size_t bad_max) {
  std::vector<std::string> names = {""};
  for (const CheckpointInfo& checkpoint : checkpoints()) names.push_back(checkpoint.about.name);
  Verification verification(bad_max);
  if (!verification.open()) return base::system_error(ENOMEM, "verify " + folder_);
  for (const std::string& name : names) {
    const auto snapshot = open_at(name);
    const auto has_name = [&](const CheckpointInfo& c) { return c.about.name == name; };
    if (!snapshot && !name.empty() && std::ranges::none_of(checkpoints(), has_name))
      continue;  // removed meanwhile
    if (!snapshot) return Error{snapshot.code(), "verify " + folder_ + ": " + snapshot.message()};
    verification.look_through(*snapshot.value(), name);
  }
  return std::move(verification.bad());
}

Result<std::vector<BadChunk>> Pool::verify_checkpoint(const std::string& name, size_t bad_max) {
  Verification verification(bad_max);
  if (!verification.open()) return base::system_error(ENOMEM, "verify " + folder_);
  const auto snapshot = open_at(name);
  if (!snapshot) return snapshot.error();
  verification.look_through(*snapshot.value(), name);
  return std::move(verification.bad());
}

Usage Pool::usage() const {
  const std::lock_guard guard(mutex_);
  Usage usage;
  usage.chunk_bytes = chunk_bytes_;
  usage.file_bytes = heap_->capacity() * chunk_bytes_;
  const uint64_t used_bytes = heap_->used_count() * chunk_bytes_;
  uint64_t live_count = 0;
  for (const auto& [id, object] : objects_) {
    object->map_->for_each(0, UINT64_MAX, [&](uint64_t, Entry) { ++live_count; });
    usage.map_bytes += object->map_->memory_bytes();
  }
  usage.live_bytes = live_count * chunk_bytes_;
  usage.held_bytes = used_bytes - std::min(used_bytes, usage.live_bytes);
  usage.free_bytes = usage.file_bytes - std::min(usage.file_bytes, used_bytes + chunk_bytes_);
  return usage;
}

// Checks that every block of a map is in use exactly once, and that blocks and graves add up.
bool Pool::is_valid() const {
  const std::lock_guard guard(mutex_);
  std::vector<bool> seen(heap_->capacity());
  bool is_right = heap_->is_valid();
  uint64_t live_count = 0;
  const auto see = [&](uint32_t block) {
    is_right = is_right && block < seen.size() && !seen[block] && heap_->is_used(block);
    if (block < seen.size()) seen[block] = true;
  };
  for (const auto& [id, object] : objects_)
    object->map_->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      see(entry.block);
      ++live_count;
    });
  for (const Grave& grave : heap_->kept()) see(grave.block);
  return is_right && live_count + heap_->kept_count() <= heap_->used_count();
}

}  // namespace outcore::versioned
