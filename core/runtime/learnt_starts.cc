#include "core/runtime/learnt_starts.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>

#include "core/base/assert.h"
#include "core/os/cancel_block.h"
#include "core/runtime/exit_report.h"
#include "core/runtime/runtime_impl.h"

namespace outcore {
namespace runtime {

using paging::PageCache;

namespace {

// The program may go elsewhere before the profile is written.
std::string absolute_profile(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

// nullptr: the bytes are in no file, or the region has changes of its own, or its pages are a
// buffer's, in which others bring them in.
const store::FileStore* file_of(const Region::Impl& region) {
  if (region.access == Access::kPrivate || region.cache->shared != nullptr) return nullptr;
  return dynamic_cast<const store::FileStore*>(region.cache->store.load());
}

}  // namespace

void LearntStarts::start() {
  OC_CHECK(learners_.empty());
  if (runtime_.options.learn_file == "none") return;
  learners_.push_back(std::make_unique<Learner>(absolute_profile(runtime_.options.learn_file)));
  learns_by_option_ = true;
}

std::string LearntStarts::complaint() {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  return learns_by_option_ ? learners_.front()->complaint() : std::string();
}

void LearntStarts::count_replayed_files() {
  if (learns_by_option_) replayed_files_.store(learners_.front()->replayed_files());
}

void LearntStarts::learn_by_option(Region::Impl& region) {
  if (!learns_by_option_ || !learners_.front()->complaint().empty()) return;
  const store::FileStore* const file = file_of(region);
  if (file == nullptr) return;
  Learner& learner = *learners_.front();
  const region::View& view = *region.view;
  try {
    const Result<store::FileFacts> facts = file->facts();
    if (!facts) return;
    learner.record(*region.cache, facts.value());
    if (!learner.is_recording(*region.cache)) return;
    learner.replay(*runtime_.engine, view, view.offset, view.offset + view.mapped_bytes(),
                   Learner::Repeat::kOnce);
    count_replayed_files();
  } catch (const std::bad_alloc&) {
    // The region is mapped already: what needs memory for a hint is left.
  }
}

void LearntStarts::end(const PageCache& cache) {
  OC_CHECK(cache.view_count.load() == 0);
  const bool is_cut_off = runtime_.engine->forget_replays(cache);
  for (const auto& learner : learners_) learner->end(cache, is_cut_off);
}

Status LearntStarts::learn(Region::Impl& region, const std::string& profile, uint64_t from,
                           uint64_t to) {
  const std::string path = absolute_profile(profile);
  const auto attempted = [&] { return "learn " + region.uri + " from " + path + ": "; };
  if (profile.empty()) return Error{EINVAL, attempted() + "name a file for the profile"};
  const store::FileStore* const file = file_of(region);
  if (file == nullptr)
    return Error{ENOTSUP, attempted() +
                              "only what is in a file, and not mapped privately, is "
                              "learnt: map the file itself"};
  const auto found = std::find_if(learners_.begin(), learners_.end(),
                                  [&](const auto& learner) { return learner->path() == path; });
  for (const auto& other : learners_)
    if (other->is_recording(*region.cache) && other->path() != path)
      return Error{EBUSY, attempted() + "it is learnt in " + other->path() +
                              " already: use that one, or set no option 'learn'"};
  std::unique_ptr<Learner> fresh;
  if (found == learners_.end()) fresh = std::make_unique<Learner>(path);
  Learner& learner = fresh != nullptr ? *fresh : **found;
  if (!learner.complaint().empty()) return Error{EINVAL, learner.complaint()};
  const Result<store::FileFacts> facts = file->facts();
  if (!facts) return facts.error();
  // It must be there as long as it records.
  if (fresh != nullptr) learners_.push_back(std::move(fresh));
  learner.record(*region.cache, facts.value());
  if (!learner.is_recording(*region.cache))
    return Error{ENOMEM, attempted() + "no memory for what is to be recorded, or too many files"};
  learner.replay(*runtime_.engine, *region.view, from, to, Learner::Repeat::kAgain);
  count_replayed_files();
  keep_learnt_at_exit(runtime_.shared_from_this());
  return {};
}

Status LearntStarts::keep(bool may_wait) {
  std::unique_lock<std::mutex> guard(runtime_.mapping, std::defer_lock);
  if (may_wait)
    guard.lock();
  else if (lock_soon(runtime_.mapping))
    guard = std::unique_lock<std::mutex>(runtime_.mapping, std::adopt_lock);
  else
    return Error{EAGAIN, "keep what was learnt: another thread maps or unmaps all the time"};
  std::vector<Learnt> all;
  for (const auto& learner : learners_)
    if (Learnt learnt = learner->learnt(); !learnt.files.empty()) all.push_back(std::move(learnt));
  guard.unlock();
  return keep_learnt(std::move(all));
}

}  // namespace runtime

Status Region::learn(const std::string& profile, uint64_t offset, uint64_t size_bytes) {
  const os::CancelBlock uncancelled;
  if (!is_mapped()) return Error{EINVAL, "learn: the region is not mapped"};
  if (Status s = impl_->runtime->check_alive("learn"); !s) return s;
  const uint64_t mapped = impl_->view->mapped_bytes();
  if (offset > mapped || size_bytes > mapped - offset)
    return Error{EINVAL, "learn " + std::to_string(size_bytes) + " bytes at " +
                             std::to_string(offset) + " of " + impl_->uri +
                             ": the region ends at " + std::to_string(mapped)};
  const std::lock_guard<std::mutex> guard(impl_->runtime->mapping);
  const uint64_t from = impl_->view->offset + offset;
  return impl_->runtime->learnt->learn(*impl_, profile, from, from + size_bytes);
}

Status Region::learn(const std::string& profile) {
  return learn(profile, 0, is_mapped() ? impl_->view->mapped_bytes() : 0);
}

Status Region::keep_learnt() {
  const os::CancelBlock uncancelled;
  if (!is_mapped()) return Error{EINVAL, "keep what was learnt: the region is not mapped"};
  if (Status s = impl_->runtime->check_alive("keep what was learnt"); !s) return s;
  return impl_->runtime->learnt->keep(true);
}

}  // namespace outcore
