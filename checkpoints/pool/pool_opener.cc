#include "checkpoints/pool/pool_opener.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "checkpoints/pool/verify.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace outcore::versioned {
namespace {

constexpr const char* kData = "data";

Status check_chunk(uint32_t chunk_bytes, const std::string& attempted) {
  if (base::is_power_of_two(chunk_bytes) && chunk_bytes >= kChunkBytesMin &&
      chunk_bytes <= kChunkBytesMax)
    return {};
  return Error{EINVAL, attempted + ": chunks of " + base::format_bytes(chunk_bytes) +
                           " cannot be: a power of two from " + base::format_bytes(kChunkBytesMin) +
                           " to " + base::format_bytes(kChunkBytesMax)};
}

// After an fsync that failed, the kernel may keep what was written in memory and believe that it is
// stored: the next fsync returns 0. This can concern only the last record, and the zeros that
// replaced an unfinished record. Both are written again, so that the next fsync tells the truth. 0
// or -errno.
int write_end_again(File& file, const Loaded& loaded) {
  std::vector<std::byte> bytes(std::min<uint64_t>(loaded.end - loaded.last, 1 << 20));
  for (uint64_t at = loaded.last; at < loaded.end; at += bytes.size()) {
    const auto piece = std::span(bytes).first(std::min<uint64_t>(bytes.size(), loaded.end - at));
    int error = file.read(at, piece);
    if (error == 0) error = file.write(at, piece);
    if (error != 0) return error;
  }
  const std::array<std::byte, sizeof(RecordHeader)> none{};
  return file.size_bytes() > loaded.end ? file.write(loaded.end, none) : 0;
}

}  // namespace

Status PoolOpener::open(const PoolOptions& options) {
  // The lock is a file, too, which has no business in a folder that is no pool.
  const auto has_none = [&] {
    const auto there = list_journals(*pool_.disk);
    return there && there->empty();
  };
  if (has_none())
    if (Status s = can_found(options); !s && has_none()) return s;
  if (Status s = pool_.disk->lock_writer(); !s) return s;
  const auto numbers = list_journals(*pool_.disk);
  if (!numbers) return numbers.error();
  Status status = numbers->empty() ? found(options) : load(options, numbers.value());
  if (!status) return status;
  pool_.reader = std::make_unique<ChunkReader>(*pool_.data, pool_.chunk_bytes, pool_.folder.c_str(),
                                               pool_.last_failure);
  if (!pool_.reader->open()) return base::system_error(ENOMEM, "open " + pool_.folder);
  pool_.is_closed = false;
  return {};
}

Status PoolOpener::can_found(const PoolOptions& options) const {
  const std::string attempted = "open " + pool_.folder;
  const auto names = pool_.disk->list();
  if (!names) return names.error();
  if (std::count(names->begin(), names->end(), kData) > 0) {
    auto data = pool_.disk->open(kData, Disk::Mode::kRead, true);
    if (!data) return data.error();
    if (data.value()->size_bytes() > 0)
      return Error{EIO, attempted + ": its journals are missing: restore a copy"};
  }
  if (!options.may_create)
    return Error{EINVAL, attempted + ": there is no pool: check the path, or create one first"};
  for (const std::string& name : names.value())
    if (name != kData && name != "lock" && name != "readers" && name != kUnfinishedJournal)
      return Error{EINVAL, attempted + ": it is not a pool, and not empty ('" + name +
                               "'): name a new or an empty folder"};
  return check_chunk(options.chunk_bytes == 0 ? kChunkBytesDefault : options.chunk_bytes,
                     attempted);
}

// REQUIRES: the lock of the writer.
Status PoolOpener::found(const PoolOptions& options) {
  const std::string attempted = "open " + pool_.folder;
  if (Status s = can_found(options); !s) return s;  // somebody may have made one meanwhile
  const auto names = pool_.disk->list();
  if (!names) return names.error();
  const bool has_data = std::count(names->begin(), names->end(), kData) > 0;
  State state;
  state.chunk_bytes = options.chunk_bytes == 0 ? kChunkBytesDefault : options.chunk_bytes;
  if (::getrandom(&state.pool_id, sizeof state.pool_id, 0) != sizeof state.pool_id)
    return base::system_error(errno, attempted + ": ask for a random number");
  auto data = pool_.disk->open(kData, has_data ? Disk::Mode::kWrite : Disk::Mode::kCreateNew, true);
  if (!data) return data.error();
  // A journal must never exist without its data file.
  if (const int error = pool_.disk->sync_folder(); error != 0)
    return base::system_error(error, attempted + ": make it durable");
  if (Status s = journals_.found(state); !s) return s;
  pool_.data = std::move(data.value());
  pool_.chunk_bytes = state.chunk_bytes;
  pool_.heap = std::make_unique<BlockHeap>(*pool_.data, pool_.chunk_bytes);
  return pool_.heap->cover_file() ? Status() : base::system_error(ENOMEM, attempted);
}

Status PoolOpener::load(const PoolOptions& options, const std::vector<uint32_t>& numbers) {
  OC_CHECK(!numbers.empty());
  const std::string attempted = "open " + pool_.folder;
  pool_.disk->unlink(kUnfinishedJournal);
  std::vector<JournalFile> files;
  for (const uint32_t number : numbers) {
    const auto first = first_commit_of(*pool_.disk, number);
    if (first) files.push_back({number, first.value()});
  }
  auto loaded = load_journal(*pool_.disk, numbers.back());
  if (!loaded) return loaded.error();
  if (loaded->damage && loaded->is_continued)
    loaded->damage = Error{EIO, journal_name(numbers.back() + 1) + " is missing"};
  if (!loaded->damage) return explain_damage(*pool_.disk, loaded->damage.error());
  if (Status s = check_chunk(loaded->state.chunk_bytes, attempted); !s) return s;
  if (options.chunk_bytes != 0 && options.chunk_bytes != loaded->state.chunk_bytes)
    return Error{EINVAL, attempted + ": it has chunks of " +
                             base::format_bytes(loaded->state.chunk_bytes) + ", " +
                             base::format_bytes(options.chunk_bytes) +
                             " are asked for: leave out chunk="};
  pool_.chunk_bytes = loaded->state.chunk_bytes;
  auto data = pool_.disk->open(kData, Disk::Mode::kWrite, true);
  if (!data) return data.error();
  pool_.data = std::move(data.value());
  auto file = pool_.disk->open(journal_name(numbers.back()), Disk::Mode::kWrite, false);
  if (!file) return file.error();
  // A writer that was killed may have left the end of the journal in the kernel's memory only.
  // Because new records build on it, it must become durable first. The rest of an unfinished record
  // is removed.
  int error = write_end_again(*file.value(), *loaded);
  if (error == 0) error = pool_.data->sync();
  if (error == 0) error = file.value()->sync();
  if (error == 0) error = pool_.disk->sync_folder();
  if (error != 0) return base::system_error(error, attempted + ": make it durable");
  journals_.resume(std::move(files), std::move(file.value()), loaded.value());
  return adopt(loaded.value());
}

Status PoolOpener::adopt(Loaded& loaded) {
  OC_CHECK(pool_.chunk_bytes != 0 && pool_.data != nullptr && !journals_.is_broken());
  State& state = loaded.state;
  pool_.last_commit = state.commit;
  pool_.interval = state.commit + 1;
  pool_.free_from = state.commit + 1;
  pool_.next_object = state.next_object;
  pool_.checkpoints = std::move(state.checkpoints);
  for (const uint32_t commit : pool_.disk->held_by_others())
    if (commit < pool_.last_commit) pool_.lingering.push_back(commit);
  pool_.heap = std::make_unique<BlockHeap>(*pool_.data, pool_.chunk_bytes);
  if (!pool_.heap->cover_file()) return base::system_error(ENOMEM, "open " + pool_.folder);
  if (Status s = adopt_blocks(state); !s) return s;
  for (auto& [id, from] : state.objects) {
    pool_.objects[id] =
        std::make_shared<Object>(id, from.name, from.size_bytes, std::move(from.map));
  }
  journals_.drop_unneeded();
  return {};
}

Status PoolOpener::adopt_blocks(const State& state) {
  const auto wrong = [this](const std::string& what) {
    return explain_damage(*pool_.disk, Error{EIO, what});
  };
  uint32_t bad_block = 0;
  for (const auto& [id, object] : state.objects)
    object.map->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      if (!pool_.heap->mark_used(entry.block)) bad_block = entry.block;
    });
  if (bad_block != 0)
    return wrong(
        bad_block < pool_.heap->capacity()
            ? "its last journal is damaged: block " + std::to_string(bad_block) + " is used twice"
            : "data was cut short: the last commit needs block " + std::to_string(bad_block) +
                  ", and it has " + std::to_string(pool_.heap->capacity()));
  const auto graves = needed_graves(state, pool_.held_commits());
  if (!graves) return base::system_error(graves.code(), "open " + pool_.folder);
  for (const Grave& grave : graves.value())
    if (!pool_.heap->adopt_grave(grave))
      return wrong("its last journal is damaged, or data was cut short: a checkpoint needs block " +
                   std::to_string(grave.block));
  return {};
}

}  // namespace outcore::versioned
