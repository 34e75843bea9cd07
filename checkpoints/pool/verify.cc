#include "checkpoints/pool/verify.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <unordered_map>

#include "checkpoints/pool/mapped_array.h"
#include "checkpoints/pool/snapshot.h"
#include "checkpoints/pool/state.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"

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

using Objects = std::map<uint32_t, StateObject>;

// Whether the data file is long enough for the state. Only reading tells whether its bytes are
// right.
bool has_all_blocks(const Objects& objects, uint64_t chunk_bytes, uint64_t data_bytes) {
  bool has_all = true;
  for (const auto& [id, object] : objects)
    object.map->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      has_all = has_all && (uint64_t{entry.block} + 1) * chunk_bytes <= data_bytes;
    });
  return has_all;
}

// A block that two chunks have; 0, which no chunk has: none.
uint32_t find_double(const Objects& objects) {
  std::vector<bool> seen;
  uint32_t found = 0;
  for (const auto& [id, object] : objects)
    object.map->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      if (seen.size() <= entry.block)
        seen.resize(std::max<size_t>(entry.block + 1, seen.size() * 2));
      if (seen[entry.block]) found = entry.block;
      seen[entry.block] = true;
    });
  return found;
}

Error no_journal(Disk& disk) {
  const auto data = disk.open("data", Disk::Mode::kRead, true);
  if (data && data.value()->size_bytes() > 0)
    return {EIO, "verify " + disk.name() + ": its journals are missing: restore a copy"};
  return {EINVAL, "verify " + disk.name() + ": it has no journal: name the folder of a pool"};
}

// The checkpoints as the newest journal has them, which can be read to its end. Its writer may be
// replacing journals just now, so one that looks damaged is read again.
Result<std::vector<Checkpoint>> newest_checkpoints(Disk& disk) {
  constexpr int kReadingsMax = 5;
  constexpr uint64_t kPauseNs = 1'000'000;
  Error last;
  for (int look = 0; look < kReadingsMax; ++look) {
    const auto numbers = list_journals(disk);
    if (!numbers) return numbers.error();
    if (numbers->empty()) return no_journal(disk);
    auto loaded = load_journal(disk, numbers->back());
    if (!loaded && loaded.code() != EIO && loaded.code() != ENOENT) return loaded.error();
    if (!loaded)
      last = loaded.error();
    else if (!loaded->damage)
      last = loaded->damage.error();
    else if (loaded->is_continued)
      last = {EIO, journal_name(numbers->back() + 1) + " is missing"};
    else
      return std::move(loaded->state.checkpoints);
    os::pause(kPauseNs);
  }
  return last.code == EIO ? explain_damage(disk, last) : last;
}

// The checkpoint, held; nullptr: it has been removed meanwhile. One that is there is the same as
// before, whatever its name is by now.
Result<std::shared_ptr<Snapshot>> open_unless_removed(const std::shared_ptr<Disk>& disk,
                                                      uint32_t number) {
  constexpr int kTriesMax = 1000;
  constexpr uint64_t kPauseNs = 1'000'000;  // a removal takes as long as the disk needs to sync
  Error last;
  for (int look = 0; look < kTriesMax; ++look) {
    auto snapshot = Snapshot::open_commit(disk, number);
    // Whoever removed it before it was held has recorded that before.
    const auto there = newest_checkpoints(*disk);
    if (!there) return there.error();
    const auto is_it = [&](const Checkpoint& c) { return c.number == number; };
    if (std::ranges::none_of(there.value(), is_it)) return std::shared_ptr<Snapshot>();
    if (snapshot) return snapshot;
    last = snapshot.error();
    if (last.code != EBUSY) break;
    os::pause(kPauseNs);
  }
  return Error{last.code, "verify " + disk->name() + ": " + last.message};
}

// What was found, unless a copy without locks has got a writer meanwhile: then nobody knows.
Result<PoolCheck> told(Disk& disk, std::vector<BadChunk>& bad, uint32_t chunk_bytes) {
  if (disk.has_got_writer())
    return Error{EBUSY, "verify " + disk.name() +
                            ": somebody has opened it to write meanwhile: verify it again"};
  return PoolCheck{std::move(bad), chunk_bytes};
}

}  // namespace

Error explain_damage(Disk& disk, const Error& damage) {
  std::string names;
  const auto data = disk.open("data", Disk::Mode::kRead, true);
  const uint64_t data_bytes = data ? data.value()->size_bytes() : 0;
  const auto numbers = list_journals(disk);
  std::set<std::string> seen;
  for (size_t i = numbers ? numbers->size() : 0; i-- > 0;) {
    const auto loaded = load_journal(disk, numbers.value()[i]);
    if (!loaded || !loaded->has_base) continue;
    for (const Checkpoint& checkpoint : loaded->state.checkpoints) {
      if (!seen.insert(checkpoint.name).second) continue;
      const auto state = load_commit(disk, checkpoint.number);
      if (state && has_all_blocks(state->objects, state->chunk_bytes, data_bytes))
        names += (names.empty() ? "'" : ", '") + checkpoint.name + "'";
    }
    break;
  }
  return {damage.code, "open " + disk.name() + ": " + damage.message +
                           (names.empty() ? ": no checkpoint can be read: restore a copy"
                                          : ": still readable are the checkpoints " + names +
                                                ": export them, or restore a copy")};
}

Result<PoolCheck> verify_pool(const std::shared_ptr<Disk>& disk, size_t bad_max) {
  disk->tolerate_copies();
  if (const auto there = newest_checkpoints(*disk); !there) return there.error();
  Verification verification(bad_max);
  if (!verification.open()) return base::system_error(ENOMEM, "verify " + disk->name());
  auto last = Snapshot::open(disk, "");
  if (!last) return Error{last.code(), "verify " + disk->name() + ": " + last.message()};
  const uint32_t chunk_bytes = last.value()->chunk_bytes();
  const Objects& objects = last.value()->objects();
  if (!has_all_blocks(objects, chunk_bytes, last.value()->data().size_bytes()))
    return explain_damage(*disk, Error{EIO, "data was cut short: the last commit needs more"});
  if (const uint32_t block = find_double(objects); block != 0)
    return explain_damage(*disk, Error{EIO, "its last journal is damaged: block " +
                                                std::to_string(block) + " is used twice"});
  verification.look_through(*last.value(), "");
  const std::vector<Checkpoint> checkpoints = last.value()->checkpoints();
  last.value().reset();  // or its writer could free nothing meanwhile
  for (const Checkpoint& checkpoint : checkpoints) {
    const auto snapshot = open_unless_removed(disk, checkpoint.number);
    if (!snapshot) return snapshot.error();
    if (snapshot.value() != nullptr) verification.look_through(*snapshot.value(), checkpoint.name);
  }
  return told(*disk, verification.bad(), chunk_bytes);
}

Result<PoolCheck> verify_checkpoint(const std::shared_ptr<Disk>& disk, const std::string& name,
                                    size_t bad_max) {
  Verification verification(bad_max);
  if (!verification.open()) return base::system_error(ENOMEM, "verify " + disk->name());
  const auto snapshot = Snapshot::open(disk, name);
  if (!snapshot) return snapshot.error();
  verification.look_through(*snapshot.value(), name);
  return told(*disk, verification.bad(), snapshot.value()->chunk_bytes());
}

}  // namespace outcore::versioned
