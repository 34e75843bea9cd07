#include "checkpoints/pool/checkpoints.h"

#include <algorithm>
#include <cerrno>

namespace outcore::versioned {

std::vector<CheckpointInfo> Checkpoints::list() const {
  const std::lock_guard guard(pool_.mutex);
  std::vector<CheckpointInfo> all;
  for (const Checkpoint& checkpoint : pool_.checkpoints) all.push_back({checkpoint, 0});
  const std::vector<uint32_t> held = pool_.held_commits();
  for (const Grave& grave : pool_.heap->kept()) {
    const auto first = std::lower_bound(held.begin(), held.end(), grave.birth);
    const bool is_of_one = first != held.end() && *first < grave.death &&
                           (first + 1 == held.end() || *(first + 1) >= grave.death);
    if (!is_of_one) continue;
    const auto owner =
        std::lower_bound(all.begin(), all.end(), *first,
                         [](const CheckpointInfo& c, uint32_t n) { return c.about.number < n; });
    if (owner != all.end() && owner->about.number == *first) owner->only_bytes += pool_.chunk_bytes;
  }
  return all;
}

bool Checkpoints::has(const std::string& name) const {
  const std::lock_guard guard(pool_.mutex);
  return pool_.has_checkpoint(name);
}

Status Checkpoints::remove(const std::vector<std::string>& names) {
  const std::lock_guard guard(pool_.mutex);
  std::vector<uint32_t> numbers;
  const auto unclaim_all = [&] {
    for (const uint32_t number : numbers) pool_.disk->unclaim(number);
  };
  std::string attempted = "remove checkpoints of " + pool_.folder;
  if (Status s = pool_.check_usable(attempted); !s) return s;
  for (const std::string& name : names) {
    attempted = "remove the checkpoint '" + name + "' of " + pool_.folder;
    const auto found = pool_.find_checkpoint(name, attempted);
    if (!found) return unclaim_all(), found.error();
    const uint32_t number = found.value()->number;
    if (std::count(numbers.begin(), numbers.end(), number) > 0) continue;
    const bool is_read_here = pool_.read_commits->has(number);
    if (is_read_here || !pool_.disk->claim(number)) {
      unclaim_all();
      return Error{EBUSY, attempted + ": " +
                              (is_read_here ? "this process" : pool_.disk->who_holds(number)) +
                              " reads it: end that first"};
    }
    numbers.push_back(number);
  }
  Encoder record;
  record.put(static_cast<uint32_t>(numbers.size()));
  for (const uint32_t number : numbers) record.put(number);
  const int error = numbers.empty() ? 0
                                    : journals_.append(RecordType::kRemoval, pool_.last_commit,
                                                       record.bytes(), {true, true});
  if (error == 0) {
    std::erase_if(pool_.checkpoints, [&](const Checkpoint& c) {
      return std::count(numbers.begin(), numbers.end(), c.number) > 0;
    });
    pool_.heap->free_runs(pool_.heap->remove_unneeded(pool_.held_commits()));
    journals_.drop_unneeded();
  }
  unclaim_all();
  return error == 0 ? Status() : pool_.fail(error, attempted, journals_.is_broken());
}

Status Checkpoints::rename(const std::string& from, const std::string& to) {
  const std::string attempted = "rename the checkpoint '" + from + "' of " + pool_.folder;
  const std::lock_guard guard(pool_.mutex);
  if (Status s = pool_.check_usable(attempted); !s) return s;
  if (Status s = check_name(to, attempted); !s) return s;
  if (from != to && pool_.has_checkpoint(to))
    return Error{EEXIST, attempted + " to '" + to + "': there is one: take another name"};
  const auto found = pool_.find_checkpoint(from, attempted);
  if (!found) return found.error();
  Encoder record;
  record.put(found.value()->number);
  record.put(std::string_view(to));
  const int error =
      journals_.append(RecordType::kRename, pool_.last_commit, record.bytes(), {true, true});
  if (error != 0) return pool_.fail(error, attempted, journals_.is_broken());
  found.value()->name = to;
  return {};
}

Result<std::shared_ptr<Snapshot>> Checkpoints::open(const std::string& name) {
  uint32_t commit = 0;
  {
    const std::lock_guard guard(pool_.mutex);
    commit = pool_.last_commit;
    if (!name.empty()) {
      const auto found =
          pool_.find_checkpoint(name, "open the checkpoint '" + name + "' of " + pool_.folder);
      if (!found) return found.error();
      commit = found.value()->number;
    }
    pool_.read_commits->add(commit);
  }
  return Snapshot::open_counted(pool_.disk, commit, pool_.read_commits);
}

}  // namespace outcore::versioned
