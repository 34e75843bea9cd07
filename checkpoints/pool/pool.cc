// How a pool is created and opened; and its objects.
#include "checkpoints/pool/pool.h"

#include <sys/random.h>

#include <algorithm>
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

Status check_name(const std::string& name, const std::string& attempted) {
  if (!name.empty() && name.size() <= kNameBytesMax && name.find('\0') == std::string::npos)
    return {};
  return Error{EINVAL, attempted + ": a name has 1 to " + std::to_string(kNameBytesMax) +
                           " bytes, none of them zero"};
}

Result<std::shared_ptr<Pool>> Pool::open(std::shared_ptr<Disk> disk, const PoolOptions& options) {
  std::shared_ptr<Pool> pool(new Pool(disk));
  pool->delta_bytes_min_ = options.delta_bytes_min;
  // The lock is a file, too, which has no business in a folder that is no pool.
  const auto has_none = [&] {
    const auto there = list_journals(*disk);
    return there && there->empty();
  };
  if (has_none())
    if (Status s = pool->can_found(options); !s && has_none()) return s.error();
  if (Status s = disk->lock_writer(); !s) return s.error();
  const auto numbers = list_journals(*disk);
  if (!numbers) return numbers.error();
  Status status = numbers->empty() ? pool->found(options) : pool->load(options, numbers.value());
  if (!status) return status.error();
  pool->reader_ = std::make_unique<ChunkReader>(*pool->data_, pool->chunk_bytes_,
                                                pool->folder_.c_str(), pool->last_failure_);
  if (!pool->reader_->open()) return base::system_error(ENOMEM, "open " + pool->folder_);
  pool->is_closed_ = false;
  return pool;
}

Status Pool::can_found(const PoolOptions& options) const {
  const std::string attempted = "open " + folder_;
  const auto names = disk_->list();
  if (!names) return names.error();
  if (std::count(names->begin(), names->end(), kData) > 0) {
    auto data = disk_->open(kData, Disk::Mode::kRead, true);
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
Status Pool::found(const PoolOptions& options) {
  const std::string attempted = "open " + folder_;
  if (Status s = can_found(options); !s) return s;  // somebody may have made one meanwhile
  const auto names = disk_->list();
  if (!names) return names.error();
  const bool has_data = std::count(names->begin(), names->end(), kData) > 0;
  State state;
  state.chunk_bytes = options.chunk_bytes == 0 ? kChunkBytesDefault : options.chunk_bytes;
  if (::getrandom(&state.pool_id, sizeof state.pool_id, 0) != sizeof state.pool_id)
    return base::system_error(errno, attempted + ": ask for a random number");
  pool_id_ = state.pool_id;
  auto data = disk_->open(kData, has_data ? Disk::Mode::kWrite : Disk::Mode::kCreateNew, true);
  if (!data) return data.error();
  // A journal must never exist without its data file.
  if (const int error = disk_->sync_folder(); error != 0)
    return base::system_error(error, attempted + ": make it durable");
  auto journal = write_journal(1, state, {}, 1);
  if (!journal) return journal.error();
  data_ = std::move(data.value());
  journal_ = std::move(journal.value());
  base_bytes_ = journal_->end();
  journals_ = {{1, 0}};
  chunk_bytes_ = state.chunk_bytes;
  heap_ = std::make_unique<BlockHeap>(*data_, chunk_bytes_);
  return heap_->cover_file() ? Status() : base::system_error(ENOMEM, attempted);
}

// Writes a journal that begins with the state: it exists completely and durably, or not at all.
Result<std::unique_ptr<Journal>> Pool::write_journal(uint32_t number, const State& state,
                                                     const MappedArray<Grave>& graves,
                                                     uint64_t sequence) {
  const std::string attempted = "write " + folder_ + "/" + journal_name(number);
  auto file = disk_->open(kUnfinishedJournal, Disk::Mode::kCreate, false);
  if (!file) return file.error();
  auto journal =
      std::make_unique<Journal>(std::move(file.value()), pool_id_, uint64_t{0}, sequence);
  int error = write_base(*journal, state, graves);
  if (error == 0) error = journal->sync();
  if (error == 0) error = disk_->rename(kUnfinishedJournal, journal_name(number));
  if (error != 0) {
    disk_->unlink(kUnfinishedJournal);
    return base::system_error(error, attempted);
  }
  error = disk_->sync_folder();
  // After a loss of power the journal may have its name or not. Whichever journal we went on with
  // could be the wrong one.
  if (error != 0) return fail(error, attempted, true).error();
  return journal;
}

Status Pool::load(const PoolOptions& options, const std::vector<uint32_t>& numbers) {
  OC_CHECK(!numbers.empty());
  const std::string attempted = "open " + folder_;
  disk_->unlink(kUnfinishedJournal);
  for (const uint32_t number : numbers) {
    const auto first = first_commit_of(*disk_, number);
    if (first) journals_.push_back({number, first.value()});
  }
  auto loaded = load_journal(*disk_, numbers.back());
  if (!loaded) return loaded.error();
  if (loaded->damage && loaded->is_continued)
    loaded->damage = Error{EIO, journal_name(numbers.back() + 1) + " is missing"};
  if (!loaded->damage) return explain_damage(*disk_, loaded->damage.error());
  if (Status s = check_chunk(loaded->state.chunk_bytes, attempted); !s) return s;
  if (options.chunk_bytes != 0 && options.chunk_bytes != loaded->state.chunk_bytes)
    return Error{EINVAL, attempted + ": it has chunks of " +
                             base::format_bytes(loaded->state.chunk_bytes) + ", " +
                             base::format_bytes(options.chunk_bytes) +
                             " are asked for: leave out chunk="};
  chunk_bytes_ = loaded->state.chunk_bytes;
  pool_id_ = loaded->state.pool_id;
  auto data = disk_->open(kData, Disk::Mode::kWrite, true);
  if (!data) return data.error();
  data_ = std::move(data.value());
  auto file = disk_->open(journal_name(numbers.back()), Disk::Mode::kWrite, false);
  if (!file) return file.error();
  // A writer that was killed may have left the end of the journal in the kernel's memory only.
  // Because new records build on it, it must become durable first. The rest of an unfinished record
  // is removed.
  int error = write_end_again(*file.value(), *loaded);
  if (error == 0) error = data_->sync();
  if (error == 0) error = file.value()->sync();
  if (error == 0) error = disk_->sync_folder();
  if (error != 0) return base::system_error(error, attempted + ": make it durable");
  journal_ =
      std::make_unique<Journal>(std::move(file.value()), pool_id_, loaded->end, loaded->sequence);
  base_bytes_ = loaded->base_bytes;
  return adopt(loaded.value());
}

Status Pool::adopt(Loaded& loaded) {
  OC_CHECK(chunk_bytes_ != 0 && data_ != nullptr && journal_ != nullptr);
  State& state = loaded.state;
  last_commit_ = state.commit;
  interval_ = state.commit + 1;
  free_from_ = state.commit + 1;
  next_object_ = state.next_object;
  checkpoints_ = std::move(state.checkpoints);
  for (const uint32_t commit : disk_->held_by_others())
    if (commit < last_commit_) lingering_.push_back(commit);
  heap_ = std::make_unique<BlockHeap>(*data_, chunk_bytes_);
  if (!heap_->cover_file()) return base::system_error(ENOMEM, "open " + folder_);
  if (Status s = adopt_blocks(state); !s) return s;
  for (auto& [id, from] : state.objects) {
    const std::shared_ptr<Object> object(new Object(id, from.name));
    object->size_bytes_ = from.size_bytes;
    object->map_ = std::move(from.map);
    objects_[id] = object;
  }
  drop_journals();
  return {};
}

Status Pool::adopt_blocks(const State& state) {
  const auto wrong = [this](const std::string& what) {
    return explain_damage(*disk_, Error{EIO, what});
  };
  uint32_t bad_block = 0;
  for (const auto& [id, object] : state.objects)
    object.map->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      if (!heap_->mark_used(entry.block)) bad_block = entry.block;
    });
  if (bad_block != 0)
    return wrong(
        bad_block < heap_->capacity()
            ? "its last journal is damaged: block " + std::to_string(bad_block) + " is used twice"
            : "data was cut short: the last commit needs block " + std::to_string(bad_block) +
                  ", and it has " + std::to_string(heap_->capacity()));
  const auto graves = needed_graves(state, holds());
  if (!graves) return base::system_error(graves.code(), "open " + folder_);
  for (const Grave& grave : graves.value())
    if (!heap_->adopt_grave(grave))
      return wrong("its last journal is damaged, or data was cut short: a checkpoint needs block " +
                   std::to_string(grave.block));
  return {};
}

std::vector<std::shared_ptr<Object>> Pool::objects() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::shared_ptr<Object>> all;
  for (const auto& [id, object] : objects_) all.push_back(object);
  return all;
}

std::shared_ptr<Object> Pool::find(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  for (const auto& [id, object] : objects_)
    if (object->name() == name) return object;
  return nullptr;
}

Result<std::shared_ptr<Object>> Pool::create(const std::string& name, uint64_t size_bytes) {
  const std::string attempted = "make the object '" + name + "' in " + folder_;
  const std::lock_guard guard(mutex_);
  if (Status s = check_name(name, attempted); !s) return s.error();
  for (const auto& [id, object] : objects_)
    if (object->name() == name)
      return Error{EEXIST, attempted + ": it exists: open it, or remove it first"};
  if (objects_.size() >= kObjectsMax)
    return Error{ENOSPC, attempted + ": there are " + std::to_string(kObjectsMax) + " already"};
  if (size_bytes > ChunkMap::kChunksMax * chunk_bytes_)
    return Error{EFBIG, attempted + ": at most " +
                            base::format_bytes(ChunkMap::kChunksMax * chunk_bytes_) +
                            " with these chunks: make a pool of larger ones"};
  const std::shared_ptr<Object> object(new Object(next_object_, name));
  object->size_bytes_ = size_bytes;
  object->map_ = ChunkMap::make();
  if (object->map_ == nullptr) return base::system_error(ENOMEM, attempted);
  changed_objects_.insert(next_object_);
  objects_[next_object_++] = object;
  return object;
}

Status Pool::remove_object(const std::string& name) {
  const std::lock_guard guard(mutex_);
  const auto found = std::find_if(objects_.begin(), objects_.end(),
                                  [&](const auto& o) { return o.second->name() == name; });
  const std::string attempted = "remove the object '" + name + "' of " + folder_;
  if (found == objects_.end()) return Error{ENOENT, attempted + ": there is none of this name"};
  changed_objects_.insert(found->first);
  const std::shared_ptr<Object> object = found->second;
  objects_.erase(found);
  const os::SignalBlock block;
  gate_.close();
  const int error = kill_all(*object);
  gate_.open();
  // Blocks that only earlier commits need become free when the pool is opened again.
  return error == 0 ? Status() : base::system_error(error, attempted);
}

Status Pool::can_commit() const {
  const std::lock_guard guard(mutex_);
  return check_usable("commit " + folder_);
}

uint32_t Pool::last_commit() const {
  const std::lock_guard guard(mutex_);
  return last_commit_;
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
