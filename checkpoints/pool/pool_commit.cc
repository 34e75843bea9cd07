// How a pool's changes become durable: the cut, the data, the record, and what can be freed after
// it.
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "checkpoints/pool/pool.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {
namespace {

uint64_t now_since_1970_ns() {
  timespec t;
  ::clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Makes room, so that one push_back() cannot fail.
template <typename T>
void make_room_for_one(std::vector<T>& in) {
  if (in.size() == in.capacity()) in.reserve(in.size() * 2 + 16);
}

}  // namespace

// What has changed in one interval.
struct Pool::Cut {
  struct Group {
    std::shared_ptr<Object> object;
    MappedArray<Change> changes;
  };
  struct Table {
    uint32_t id = 0;
    bool is_removed = false;
    uint64_t size_bytes = 0;
    std::string name;
  };
  uint32_t commit = 0;
  bool is_checkpoint = false;
  Checkpoint checkpoint;
  std::vector<Group> groups;
  std::vector<Table> table;
  MappedArray<Grave> graves;
  bool has_memory = true;
  // The pool's own notes about objects. They can be returned without allocating.
  std::set<uint32_t> changed_objects, reborn_objects;
};

Status Pool::check_usable(const std::string& attempted) const {
  if (is_closed_) return Error{EBADF, attempted + ": the pool is closed"};
  if (!disk_->is_of_this_process())
    return Error{EPERM, attempted + ": it is the parent's: open it in one process"};
  if (lost_.code != 0) return Error{lost_.code, attempted + ": " + lost_.message};
  return {};
}

// `is_lost`: it is unknown what is on the disk.
Status Pool::fail(int error, const std::string& attempted, bool is_lost) {
  Error told = base::system_error(
      error, attempted, error == -ENOSPC ? "remove checkpoints, or make space on the disk" : "");
  last_failure_.note(told.message.c_str());
  if (is_lost)
    lose({told.code, "what was stored last is uncertain (" + told.message +
                         "): mend the disk and open the pool again; it will have its last "
                         "complete commit"});
  return told;
}

// The first reason counts.
void Pool::lose(const Error& why) {
  OC_ASSERT(why.code != 0);
  if (lost_.code == 0) lost_ = why;
  is_lost_ = true;
}

void Pool::refuse_commits(const Error& why) {
  const std::lock_guard guard(mutex_);
  last_failure_.note(why.message.c_str());
  lose(why);
}

bool Pool::has_changes() const {
  return !changed_objects_.empty() ||
         std::any_of(objects_.begin(), objects_.end(),
                     [](const auto& o) { return o.second->map_->has_changed(); });
}

Result<uint32_t> Pool::commit(const std::string& name, const std::string& comment) {
  const std::string attempted =
      name.empty() ? "commit " + folder_ : "make the checkpoint '" + name + "' of " + folder_;
  const std::lock_guard guard(mutex_);
  if (Status s = check_usable(attempted); !s) return s.error();
  if (name.size() > kNameBytesMax || comment.size() > kCommentBytesMax ||
      name.find('\0') != std::string::npos)
    return Error{EINVAL, attempted + ": names have at most " + std::to_string(kNameBytesMax) +
                             " bytes, comments " + std::to_string(kCommentBytesMax)};
  if (!name.empty() && is_taken(name))
    return Error{EEXIST, attempted + ": there is one: take another name, or remove it first"};
  if (checkpoints_.size() >= kCheckpointsMax)
    return Error{ENOSPC, attempted + ": there are " + std::to_string(kCheckpointsMax) +
                             ": remove some first"};
  return commit_locked(name, comment);
}

int Pool::sync() {
  const std::lock_guard guard(mutex_);
  if (Status s = check_usable("commit " + folder_); !s) {
    last_failure_.note(s.message().c_str());
    return -s.code();
  }
  if (!has_changes()) return 0;
  const auto done = commit_locked({}, {});
  return done ? 0 : -done.code();
}

Status Pool::sync_data() {
  const int error = data_->sync();
  if (error == 0) return {};
  // The kernel reports it only once: the next commit would not learn of it.
  const Error why = base::system_error(error, "sync the data of " + folder_);
  refuse_commits(why);
  return why;
}

Result<uint32_t> Pool::commit_locked(const std::string& name, const std::string& comment) {
  const std::string attempted =
      name.empty() ? "commit " + folder_ : "make the checkpoint '" + name + "' of " + folder_;
  if (interval_.load() > kCommitMax)
    return Error{EOVERFLOW, attempted + ": its commits are used up: copy it into a new pool"};
  Cut cut;
  cut.is_checkpoint = !name.empty();
  cut.checkpoint = {0, now_since_1970_ns(), 0, name, comment};
  bool is_lost = false;
  const int error = carry_out(cut, is_lost);
  if (error != 0) {
    // If the disk may contain the record, its blocks must not be written again.
    if (!is_lost) undo_cut(cut);
    return fail(error, attempted, is_lost).error();
  }
  const uint32_t commit = cut.commit;
  settle(cut);
  if (journal_->end() - base_bytes_ > std::max(delta_bytes_min_, base_bytes_)) renew_base();
  return commit;
}

// Makes the cut and makes it durable. 0 or -errno. Callers of the C interface go on after a lack of
// memory, so what the cut has taken must be there for the next commit.
int Pool::carry_out(Cut& cut, bool& is_lost) {
  try {
    // What follows the record must not fail, so it is allocated before.
    make_room_for_one(checkpoints_);
    make_room_for_one(lingering_);
    make_cut(cut);
    if (!cut.has_memory) return -ENOMEM;
    if (const int error = data_->sync(); error != 0) {
      is_lost = true;
      return error;
    }
    const int error = write_commit(cut);
    is_lost = journal_->is_broken();
    return error;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;  // nothing of the record was written
  }
}

// Collects what has changed, and begins the next interval. Writers wait meanwhile. Nothing is
// allocated from the program's heap, because a thread that waits may hold its lock.
void Pool::make_cut(Cut& cut) {
  OC_ASSERT(cut.commit == 0 && cut.graves.empty());
  for (const uint32_t id : changed_objects_) {
    const auto object = objects_.find(id);
    if (object == objects_.end() || reborn_objects_.contains(id))
      cut.table.push_back({id, true, 0, {}});
    if (object != objects_.end())
      cut.table.push_back({id, false, object->second->size_bytes(), object->second->name()});
  }
  for (const auto& [id, object] : objects_) {
    cut.groups.push_back({object, {}});
    cut.checkpoint.size_bytes += object->size_bytes();
  }
  // From here on a lack of memory loses nothing.
  cut.changed_objects.swap(changed_objects_);
  cut.reborn_objects.swap(reborn_objects_);
  const os::SignalBlock block;
  gate_.close();
  cut.commit = interval_.load();
  OC_CHECK(cut.commit > last_commit_);
  for (Cut::Group& group : cut.groups)
    group.object->map_->take_changed([&](uint64_t chunk, Entry entry) {
      const Change change{static_cast<uint32_t>(chunk), entry.block, entry.birth, entry.sum};
      if (group.changes.push_back(change)) return;
      cut.has_memory = false;
      group.object->map_->mark_changed(chunk);
    });
  heap_->take_graves(cut.graves);
  interval_.store(cut.commit + 1);
  free_from_.store(cut.commit + 1);
  gate_.open();
  cut.checkpoint.number = cut.commit;
}

// The commit is not on the disk, and never will be: its changes belong to the next commit. What was
// born since the last one, and is dead, nobody needs: a full disk needs its space.
void Pool::undo_cut(Cut& cut) {
  changed_objects_.merge(cut.changed_objects);
  reborn_objects_.merge(cut.reborn_objects);
  for (Cut::Group& group : cut.groups)
    for (const Change& change : group.changes) group.object->map_->mark_changed(change.chunk);
  heap_->return_graves(cut.graves);
  heap_->free_young(last_commit_);
  free_from_.store(last_commit_ + 1);
}

int Pool::write_commit(Cut& cut) {
  OC_ASSERT(cut.commit != 0 && cut.has_memory);
  std::erase_if(cut.groups, [](const Cut::Group& g) { return g.changes.empty(); });
  size_t count = 0;
  for (const Cut::Group& group : cut.groups) count += group.changes.size();
  Encoder record;
  record.reserve(count * kChangeBytes + kCommentBytesMax + 4096);
  record.put(uint32_t{cut.is_checkpoint});
  record.put(cut.checkpoint);
  record.put(static_cast<uint32_t>(cut.table.size()));
  for (const Cut::Table& table : cut.table) {
    record.put(table.id);
    record.put(uint32_t{table.is_removed});
    record.put(table.size_bytes);
    record.put(std::string_view(table.name));
  }
  record.put(static_cast<uint32_t>(cut.groups.size()));
  for (const Cut::Group& group : cut.groups) {
    record.put(group.object->id());
    record.put(static_cast<uint32_t>(group.changes.size()));
    for (const Change& change : group.changes) record.put(change);
  }
  return append(RecordType::kCommit, cut.commit, record.bytes(), {});
}

// If the disk is full, the space of free blocks goes back to it, and the record is tried again. 0
// or -errno.
int Pool::append(RecordType type, uint32_t commit, std::span<const std::byte> payload,
                 Journal::How how) {
  const auto try_once = [&] { return journal_->append(type, commit, payload, how); };
  int error = try_once();
  if (!is_full(error) || journal_->is_broken()) return error;
  heap_->give_back_groups();
  error = try_once();
  if (!is_full(error) || journal_->is_broken()) return error;
  heap_->give_back_singles();
  return try_once();
}

// The numbers of the commits whose blocks are kept, ascending.
std::vector<uint32_t> Pool::holds() const {
  std::vector<uint32_t> all = read_commits_->all();
  all.insert(all.end(), lingering_.begin(), lingering_.end());
  all.push_back(last_commit_);
  for (const Checkpoint& checkpoint : checkpoints_) all.push_back(checkpoint.number);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// The commit is durable: the one before it can go, and the blocks that only it needed.
void Pool::settle(Cut& cut) {
  OC_CHECK(cut.commit > last_commit_);
  const uint32_t before = last_commit_;
  last_commit_ = cut.commit;
  if (cut.is_checkpoint) checkpoints_.push_back(std::move(cut.checkpoint));
  const bool has_name = std::any_of(checkpoints_.begin(), checkpoints_.end(),
                                    [&](const Checkpoint& c) { return c.number == before; });
  // A commit without a name is kept as long as somebody reads it. When it is claimed, no new reader
  // can hold it; such a reader then finds the new record.
  if (!has_name) lingering_.push_back(before);
  std::vector<uint32_t> gone;
  try {
    gone.reserve(lingering_.size());
    for (const uint32_t commit : lingering_)
      if (!read_commits_->has(commit) && disk_->claim(commit)) gone.push_back(commit);
    std::erase_if(lingering_,
                  [&](uint32_t c) { return std::count(gone.begin(), gone.end(), c) > 0; });
    const std::vector<uint32_t> held = holds();
    heap_->settle(cut.graves, held);
    // If only the commit before has gone, no kept block was needed by it alone: such blocks have
    // just died.
    if (gone.size() > 1 || (gone.size() == 1 && gone[0] != before))
      heap_->free_runs(heap_->remove_unneeded(held));
  } catch (const std::bad_alloc&) {
    heap_->return_graves(cut.graves);  // the next commit tries again
  }
  for (const uint32_t commit : gone) disk_->unclaim(commit);
}

// Writes a new journal, which begins with the state of the last commit, read from the old one.
void Pool::renew_base() {
  if (journal_->end() < base_retry_) return;
  Status status;
  try {
    status = write_new_base();
  } catch (const std::bad_alloc&) {
    status = base::system_error(ENOMEM, "write a new base of " + folder_);
  }
  // Each attempt reads the whole journal, so it is not made at every commit.
  base_retry_ = status ? 0 : journal_->end() + journal_->end() / 4;
  // The commit is done all the same; the journal is only longer than it should be.
  if (!status) last_failure_.note(status.message().c_str());
}

Status Pool::write_new_base() {
  OC_ASSERT(journal_ != nullptr && !journals_.empty());
  const uint32_t number = journals_.back().number;
  auto loaded = load_journal(*disk_, number);
  if (!loaded) return loaded.status();
  if (!loaded->damage) return loaded->damage;
  // If the journal were read too short, the new one would lack the last commits for good.
  if (!loaded->has_base || loaded->state.commit != last_commit_ || loaded->end != journal_->end())
    return Error{EIO, "write a new base of " + folder_ + ": " + journal_name(number) +
                          " does not read as it was written: make a copy of the pool"};
  // Not the graves of the heap: a grave that the heap could not keep for lack of memory must be
  // found when the pool is opened again.
  const auto graves = needed_graves(loaded->state, holds());
  if (!graves) return graves.status();
  make_room_for_one(journals_);
  auto fresh = write_journal(number + 1, loaded->state, graves.value(), journal_->sequence());
  if (!fresh) return fresh.status();
  const std::unique_ptr<Journal> old = std::move(journal_);
  journal_ = std::move(fresh.value());
  base_bytes_ = journal_->end();
  journals_.push_back({number + 1, last_commit_});
  old->append(RecordType::kContinued, last_commit_, {}, {true, true});
  drop_journals();
  return {};
}

// Removes journals that no held commit is read from.
void Pool::drop_journals() {
  const std::vector<uint32_t> held = holds();
  size_t kept_count = 0;
  for (size_t i = 0; i < journals_.size(); ++i) {
    const bool is_last = i + 1 == journals_.size();
    const auto first = std::lower_bound(held.begin(), held.end(), journals_[i].first_commit);
    const bool is_needed =
        is_last || (first != held.end() && *first < journals_[i + 1].first_commit);
    if (is_needed || disk_->unlink(journal_name(journals_[i].number)) != 0)
      journals_[kept_count++] = journals_[i];
  }
  journals_.resize(kept_count);
}

}  // namespace outcore::versioned
