#include "checkpoints/pool/journal_chain.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {

Status JournalChain::found(const State& state) {
  pool_id_ = state.pool_id;
  auto journal = write_journal(1, state, {}, 1);
  if (!journal) return journal.error();
  journal_ = std::move(journal.value());
  base_bytes_ = journal_->end();
  files_ = {{1, 0}};
  return {};
}

void JournalChain::resume(std::vector<JournalFile> files, std::unique_ptr<File> last,
                          const Loaded& loaded) {
  files_ = std::move(files);
  pool_id_ = loaded.state.pool_id;
  journal_ = std::make_unique<Journal>(std::move(last), pool_id_, loaded.end, loaded.sequence);
  base_bytes_ = loaded.base_bytes;
}

// Writes a journal that begins with the state: it exists completely and durably, or not at all.
Result<std::unique_ptr<Journal>> JournalChain::write_journal(uint32_t number, const State& state,
                                                             const MappedArray<Grave>& graves,
                                                             uint64_t sequence) {
  const std::string attempted = "write " + pool_.folder + "/" + journal_name(number);
  auto file = pool_.disk->open(kUnfinishedJournal, Disk::Mode::kCreate, false);
  if (!file) return file.error();
  auto journal =
      std::make_unique<Journal>(std::move(file.value()), pool_id_, uint64_t{0}, sequence);
  int error = write_base(*journal, state, graves);
  if (error == 0) error = journal->sync();
  if (error == 0) error = pool_.disk->rename(kUnfinishedJournal, journal_name(number));
  if (error != 0) {
    pool_.disk->unlink(kUnfinishedJournal);
    return base::system_error(error, attempted);
  }
  error = pool_.disk->sync_folder();
  // After a loss of power the journal may have its name or not. Whichever journal we went on with
  // could be the wrong one.
  if (error != 0) return pool_.fail(error, attempted, true).error();
  return journal;
}

int JournalChain::append(RecordType type, uint32_t commit, std::span<const std::byte> payload,
                         Journal::How how) {
  const auto try_once = [&] { return journal_->append(type, commit, payload, how); };
  int error = try_once();
  if (!is_disk_full(error) || journal_->is_broken()) return error;
  pool_.heap->give_back_groups();
  error = try_once();
  if (!is_disk_full(error) || journal_->is_broken()) return error;
  pool_.heap->give_back_singles();
  return try_once();
}

void JournalChain::append_closed() {
  OC_CHECK(journal_ != nullptr);
  // An error does no harm.
  journal_->append(RecordType::kClosed, pool_.last_commit, {}, {true, true});
}

void JournalChain::renew_base() {
  if (journal_->end() - base_bytes_ <= std::max(delta_bytes_min_, base_bytes_)) return;
  if (journal_->end() < base_retry_) return;
  Status status;
  try {
    status = write_new_base();
  } catch (const std::bad_alloc&) {
    status = base::system_error(ENOMEM, "write a new base of " + pool_.folder);
  }
  // Each attempt reads the whole journal, so it is not made at every commit.
  base_retry_ = status ? 0 : journal_->end() + journal_->end() / 4;
  // The commit is done all the same; the journal is only longer than it should be.
  if (!status) pool_.last_failure.note(status.message().c_str());
}

Status JournalChain::write_new_base() {
  OC_ASSERT(journal_ != nullptr && !files_.empty());
  const uint32_t number = files_.back().number;
  auto loaded = load_journal(*pool_.disk, number);
  if (!loaded) return loaded.status();
  if (!loaded->damage) return loaded->damage;
  // If the journal were read too short, the new one would lack the last commits for good.
  if (!loaded->has_base || loaded->state.commit != pool_.last_commit ||
      loaded->end != journal_->end())
    return Error{EIO, "write a new base of " + pool_.folder + ": " + journal_name(number) +
                          " does not read as it was written: make a copy of the pool"};
  // Not the graves of the heap: a grave that the heap could not keep for lack of memory must be
  // found when the pool is opened again.
  const auto graves = needed_graves(loaded->state, pool_.held_commits());
  if (!graves) return graves.status();
  make_room_for_one(files_);
  auto fresh = write_journal(number + 1, loaded->state, graves.value(), journal_->sequence());
  if (!fresh) return fresh.status();
  const std::unique_ptr<Journal> old = std::move(journal_);
  journal_ = std::move(fresh.value());
  base_bytes_ = journal_->end();
  files_.push_back({number + 1, pool_.last_commit});
  old->append(RecordType::kContinued, pool_.last_commit, {}, {true, true});
  drop_unneeded();
  return {};
}

void JournalChain::drop_unneeded() {
  const std::vector<uint32_t> held = pool_.held_commits();
  size_t kept_count = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    const bool is_last = i + 1 == files_.size();
    const auto first = std::lower_bound(held.begin(), held.end(), files_[i].first_commit);
    const bool is_needed = is_last || (first != held.end() && *first < files_[i + 1].first_commit);
    if (is_needed || pool_.disk->unlink(journal_name(files_[i].number)) != 0)
      files_[kept_count++] = files_[i];
  }
  files_.resize(kept_count);
}

}  // namespace outcore::versioned
