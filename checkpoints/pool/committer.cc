#include "checkpoints/pool/committer.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {
namespace {

uint64_t now_since_1970_ns() {
  timespec t;
  ::clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

// What has changed in one interval.
struct Committer::Cut {
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

Status Committer::can_commit() const {
  const std::lock_guard guard(pool_.mutex);
  return pool_.check_usable("commit " + pool_.folder);
}

void Committer::refuse_commits(const Error& why) {
  const std::lock_guard guard(pool_.mutex);
  pool_.last_failure.note(why.message.c_str());
  pool_.lose(why);
}

Result<uint32_t> Committer::commit(const std::string& name, const std::string& comment) {
  const std::string attempted = name.empty()
                                    ? "commit " + pool_.folder
                                    : "make the checkpoint '" + name + "' of " + pool_.folder;
  const std::lock_guard guard(pool_.mutex);
  if (Status s = pool_.check_usable(attempted); !s) return s.error();
  if (name.size() > kNameBytesMax || comment.size() > kCommentBytesMax ||
      name.find('\0') != std::string::npos)
    return Error{EINVAL, attempted + ": names have at most " + std::to_string(kNameBytesMax) +
                             " bytes, comments " + std::to_string(kCommentBytesMax)};
  if (!name.empty() && pool_.has_checkpoint(name))
    return Error{EEXIST, attempted + ": there is one: take another name, or remove it first"};
  if (pool_.checkpoints.size() >= kCheckpointsMax)
    return Error{ENOSPC, attempted + ": there are " + std::to_string(kCheckpointsMax) +
                             ": remove some first"};
  return commit_locked(name, comment);
}

int Committer::sync() {
  const std::lock_guard guard(pool_.mutex);
  if (Status s = pool_.check_usable("commit " + pool_.folder); !s) {
    pool_.last_failure.note(s.message().c_str());
    return -s.code();
  }
  if (!pool_.has_changes()) return 0;
  const auto done = commit_locked({}, {});
  return done ? 0 : -done.code();
}

Status Committer::sync_data() {
  const int error = pool_.data->sync();
  if (error == 0) return {};
  // The kernel reports it only once: the next commit would not learn of it.
  const Error why = base::system_error(error, "sync the data of " + pool_.folder);
  refuse_commits(why);
  return why;
}

Result<uint32_t> Committer::commit_locked(const std::string& name, const std::string& comment) {
  const std::string attempted = name.empty()
                                    ? "commit " + pool_.folder
                                    : "make the checkpoint '" + name + "' of " + pool_.folder;
  if (pool_.interval.load() > kCommitMax)
    return Error{EOVERFLOW, attempted + ": its commits are used up: copy it into a new pool"};
  Cut cut;
  cut.is_checkpoint = !name.empty();
  cut.checkpoint = {0, now_since_1970_ns(), 0, name, comment};
  bool is_lost = false;
  const int error = carry_out(cut, is_lost);
  if (error != 0) {
    // If the disk may contain the record, its blocks must not be written again.
    if (!is_lost) undo_cut(cut);
    return pool_.fail(error, attempted, is_lost).error();
  }
  const uint32_t commit = cut.commit;
  settle(cut);
  journals_.renew_base();
  return commit;
}

// Makes the cut and makes it durable. 0 or -errno. Callers of the C interface go on after a lack of
// memory, so what the cut has taken must be there for the next commit.
int Committer::carry_out(Cut& cut, bool& is_lost) {
  try {
    // What follows the record must not fail, so it is allocated before.
    make_room_for_one(pool_.checkpoints);
    make_room_for_one(pool_.lingering);
    make_cut(cut);
    if (!cut.has_memory) return -ENOMEM;
    if (const int error = pool_.data->sync(); error != 0) {
      is_lost = true;
      return error;
    }
    const int error = write_commit(cut);
    is_lost = journals_.is_broken();
    return error;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;  // nothing of the record was written
  }
}

// Collects what has changed, and begins the next interval. Writers wait meanwhile. Nothing is
// allocated from the program's heap, because a thread that waits may hold its lock.
void Committer::make_cut(Cut& cut) {
  OC_ASSERT(cut.commit == 0 && cut.graves.empty());
  for (const uint32_t id : pool_.changed_objects) {
    const auto object = pool_.objects.find(id);
    if (object == pool_.objects.end() || pool_.reborn_objects.contains(id))
      cut.table.push_back({id, true, 0, {}});
    if (object != pool_.objects.end())
      cut.table.push_back({id, false, object->second->size_bytes(), object->second->name()});
  }
  for (const auto& [id, object] : pool_.objects) {
    cut.groups.push_back({object, {}});
    cut.checkpoint.size_bytes += object->size_bytes();
  }
  // From here on a lack of memory loses nothing.
  cut.changed_objects.swap(pool_.changed_objects);
  cut.reborn_objects.swap(pool_.reborn_objects);
  const os::SignalBlock block;
  pool_.gate.close();
  cut.commit = pool_.interval.load();
  OC_CHECK(cut.commit > pool_.last_commit);
  for (Cut::Group& group : cut.groups)
    group.object->map().take_changed([&](uint64_t chunk, Entry entry) {
      const Change change{static_cast<uint32_t>(chunk), entry.block, entry.birth, entry.sum};
      if (group.changes.push_back(change)) return;
      cut.has_memory = false;
      group.object->map().mark_changed(chunk);
    });
  pool_.heap->take_graves(cut.graves);
  pool_.interval.store(cut.commit + 1);
  pool_.free_from.store(cut.commit + 1);
  pool_.gate.open();
  cut.checkpoint.number = cut.commit;
}

// The commit is not on the disk, and never will be: its changes belong to the next commit. What was
// born since the last one, and is dead, nobody needs: a full disk needs its space.
void Committer::undo_cut(Cut& cut) {
  pool_.changed_objects.merge(cut.changed_objects);
  pool_.reborn_objects.merge(cut.reborn_objects);
  for (Cut::Group& group : cut.groups)
    for (const Change& change : group.changes) group.object->map().mark_changed(change.chunk);
  pool_.heap->return_graves(cut.graves);
  pool_.heap->free_young(pool_.last_commit);
  pool_.free_from.store(pool_.last_commit + 1);
}

int Committer::write_commit(Cut& cut) {
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
  return journals_.append(RecordType::kCommit, cut.commit, record.bytes(), {});
}

// The commit is durable: the one before it can go, and the blocks that only it needed.
void Committer::settle(Cut& cut) {
  OC_CHECK(cut.commit > pool_.last_commit);
  const uint32_t before = pool_.last_commit;
  pool_.last_commit = cut.commit;
  if (cut.is_checkpoint) pool_.checkpoints.push_back(std::move(cut.checkpoint));
  const bool has_name = std::any_of(pool_.checkpoints.begin(), pool_.checkpoints.end(),
                                    [&](const Checkpoint& c) { return c.number == before; });
  // A commit without a name is kept as long as somebody reads it. When it is claimed, no new reader
  // can hold it; such a reader then finds the new record.
  if (!has_name) pool_.lingering.push_back(before);
  std::vector<uint32_t> gone;
  try {
    gone.reserve(pool_.lingering.size());
    for (const uint32_t commit : pool_.lingering)
      if (!pool_.read_commits->has(commit) && pool_.disk->claim(commit)) gone.push_back(commit);
    std::erase_if(pool_.lingering,
                  [&](uint32_t c) { return std::count(gone.begin(), gone.end(), c) > 0; });
    const std::vector<uint32_t> held = pool_.held_commits();
    pool_.heap->settle(cut.graves, held);
    // If only the commit before has gone, no kept block was needed by it alone: such blocks have
    // just died.
    if (gone.size() > 1 || (gone.size() == 1 && gone[0] != before))
      pool_.heap->free_runs(pool_.heap->remove_unneeded(held));
  } catch (const std::bad_alloc&) {
    pool_.heap->return_graves(cut.graves);  // the next commit tries again
  }
  for (const uint32_t commit : gone) pool_.disk->unclaim(commit);
}

}  // namespace outcore::versioned
