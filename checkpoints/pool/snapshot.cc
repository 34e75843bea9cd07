#include "checkpoints/pool/snapshot.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"

namespace outcore::versioned {
namespace {

// How often a reader starts again because a writer has changed the journals meanwhile.
constexpr int kLooksMax = 100;

std::string attempted(const Disk& disk, const std::string& at) {
  return "open " + (at.empty() ? "the last commit" : "checkpoint '" + at + "'") + " of " +
         disk.name();
}

struct Newest {
  uint32_t commit = 0;
  std::string remark;  // about what is damaged
  std::string like;    // the newest checkpoint whose name begins with the wanted one and a dot
};

// Finds the number of the commit that `at` names, in the newest journal that can be read.
Result<Newest> look_up(Disk& disk, const std::string& at) {
  const auto numbers = list_journals(disk);
  if (!numbers) return numbers.error();
  if (numbers->empty())
    return Error{EINVAL, attempted(disk, at) + ": it has no journal: name the folder of a pool"};
  Newest newest;
  for (size_t i = numbers->size(); i-- > 0;) {
    auto loaded = load_journal(disk, numbers.value()[i]);
    if (!loaded) return loaded.error();
    if (!loaded->damage) newest.remark = loaded->damage.message();
    // Behind damage it is unknown what the last commit is; a checkpoint can still be found.
    if (!loaded->damage && at.empty())
      return Error{EIO, attempted(disk, at) + ": " + newest.remark +
                            ": `outcore checkpoint verify` shows what can still be read; or "
                            "restore a copy"};
    if (!loaded->has_base) continue;
    newest.commit = loaded->state.commit;
    if (at.empty()) return newest;
    if (const Checkpoint* const found = loaded->state.find(at)) {
      newest.commit = found->number;
      return newest;
    }
    for (const Checkpoint& checkpoint : loaded->state.checkpoints)
      if (checkpoint.name.starts_with(at + ".")) newest.like = checkpoint.name;
    if (newest.remark.empty()) break;
  }
  return Error{ENOENT, attempted(disk, at) + ": there is none of this name" +
                           (newest.like.empty() ? "" : ", but '" + newest.like + "'") +
                           (newest.remark.empty() ? ": `outcore checkpoint ls` lists them"
                                                  : "; " + newest.remark + ": restore a copy")};
}

}  // namespace

Result<std::shared_ptr<Snapshot>> Snapshot::open(std::shared_ptr<Disk> disk,
                                                 const std::string& at) {
  std::shared_ptr<Snapshot> snapshot(new Snapshot(disk));
  Error last{EBUSY, attempted(*disk, at) + ": it changes all the time: try again"};
  for (int attempt = 0; attempt < kLooksMax; ++attempt) {
    const auto wanted = look_up(*disk, at);
    // A journal that is just being written or removed looks damaged, so it is read again.
    if (!wanted) {
      last = wanted.error();
      if (last.code != EIO && last.code != ENOENT) return last;
      if (attempt > 3) return last;
      continue;
    }
    if (const int error = disk->hold(wanted->commit); error == -EAGAIN) {
      os::yield();
      continue;
    } else if (error != 0) {
      return base::system_error(error, attempted(*disk, at) + ": hold it in its file of readers",
                                error == -ENOENT ? "copy that file, too; or open the pool once to "
                                                   "write, which makes it"
                                                 : "");
    }
    snapshot->held_ = wanted->commit;
    snapshot->is_holding_ = true;
    // A writer that freed the commit before we held it has recorded that before.
    const auto again = look_up(*disk, at);
    if (again && again->commit == wanted->commit) {
      auto state = load_commit(*disk, wanted->commit);
      if (state) {
        snapshot->state_ = std::move(state.value());
        snapshot->remark_ = again->remark;
        if (Status s = snapshot->open_data(); !s) return s.error();
        return snapshot;
      }
      last = state.error();
      if (attempt > 3) return last;
    }
    disk->unhold(wanted->commit);
    snapshot->is_holding_ = false;
  }
  return last;
}

Result<std::shared_ptr<Snapshot>> Snapshot::open_counted(
    std::shared_ptr<Disk> disk, uint32_t commit, std::shared_ptr<ReadCommits> read_commits) {
  OC_CHECK(read_commits != nullptr && read_commits->has(commit));
  std::shared_ptr<Snapshot> snapshot(new Snapshot(disk));
  snapshot->read_commits_ = std::move(read_commits);
  snapshot->held_ = commit;
  if (Status s = snapshot->load(commit); !s) return s.error();
  return snapshot;
}

Result<std::shared_ptr<Snapshot>> Snapshot::open_commit(std::shared_ptr<Disk> disk,
                                                        uint32_t commit) {
  std::shared_ptr<Snapshot> snapshot(new Snapshot(disk));
  if (const int error = disk->hold(commit); error != 0)
    return base::system_error(error == -EAGAIN ? EBUSY : error,
                              "open commit " + std::to_string(commit) + " of " + disk->name());
  snapshot->held_ = commit;
  snapshot->is_holding_ = true;
  if (Status s = snapshot->load(commit); !s) return s.error();
  return snapshot;
}

// REQUIRES: it is held.
Status Snapshot::load(uint32_t commit) {
  OC_ASSERT(held_ == commit);
  auto state = load_commit(*disk_, commit);
  if (!state) return state.error();
  OC_CHECK(state.value().commit == commit);
  state_ = std::move(state.value());
  return open_data();
}

Status Snapshot::open_data() {
  OC_ASSERT(data_ == nullptr && reader_ == nullptr);
  auto data = disk_->open("data", Disk::Mode::kRead, true);
  if (!data) return data.error();
  data_ = std::move(data.value());
  reader_ =
      std::make_unique<ChunkReader>(*data_, state_.chunk_bytes, folder_.c_str(), last_failure_);
  if (!reader_->open()) return base::system_error(ENOMEM, "read " + disk_->name());
  return {};
}

Snapshot::~Snapshot() {
  OC_ASSERT(read_commits_ == nullptr || !is_holding_);
  if (read_commits_ != nullptr) read_commits_->remove(held_);
  if (is_holding_) disk_->unhold(held_);
}

const StateObject* Snapshot::find(const std::string& object) const {
  const auto found = std::find_if(state_.objects.begin(), state_.objects.end(),
                                  [&](const auto& o) { return o.second.name == object; });
  return found == state_.objects.end() ? nullptr : &found->second;
}

}  // namespace outcore::versioned
