#include "core/runtime/learner.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/prefetch/touch_log.h"
#include "core/prefetch/touches.h"
#include "core/runtime/profile_file.h"

namespace outcore::runtime {

using paging::PageCache;
using prefetch::LearntFile;
using prefetch::TouchLog;
using prefetch::TouchProfile;

Learner::Learner(std::string path) : path_(std::move(path)) {
  if (!path_.starts_with('/')) {
    complaint_ = "learn from " + path_ +
                 ": the current folder is gone: name the file by all of its "
                 "folders, from / on";
    return;
  }
  Result<TouchProfile> profile = read_profile(path_);
  if (!profile) {
    complaint_ = profile.message();
    return;
  }
  for (const LearntFile& file : profile->files())
    known_.emplace(file.path, std::make_shared<const std::string>(file.touches));
}

void Learner::record(PageCache& cache, const store::FileFacts& file) {
  if (!complaint_.empty() || is_recording(cache)) return;
  if (cache.touches.load() != nullptr) return;  // another learner's
  if (file.path.size() > TouchProfile::kPathBytesMax) return;
  if (!files_.contains(file.path) && files_.size() == TouchProfile::kFilesMax) return;
  Result<std::unique_ptr<TouchLog>> log = TouchLog::make(cache.page_count() * cache.page_bytes);
  if (!log) return;
  files_[file.path].facts = file;
  caches_[&cache] = file.path;
  cache.touches.store(std::move(log).value().release(), std::memory_order_release);
}

void Learner::replay(paging::Engine& engine, const region::View& view, uint64_t from, uint64_t to) {
  const auto recorded = caches_.find(view.cache);
  OC_CHECK(recorded != caches_.end());
  OC_CHECK(from <= to);
  const auto known = known_.find(recorded->second);
  if (known == known_.end()) return;
  const uint64_t end = std::min(to, view.cache->store_bytes.load());
  const os::SignalBlock block;
  // A hint: without a thread, or behind too many others, it is none.
  if (from < end && engine.replay(view, from, end, known->second).ok())
    replayed_.insert(recorded->second);
}

// Behind what there is already: what was needed in an earlier mapping comes first.
void Learner::add_log(const PageCache& cache, std::string* touches) {
  const TouchLog* const log = cache.touches.load();
  OC_CHECK(log != nullptr);
  *touches = prefetch::encode_touches(prefetch::join_touches(
      prefetch::decode_touches(*touches), prefetch::encode_touches(log->touches())));
}

void Learner::end(const PageCache& cache) {
  const auto recorded = caches_.find(&cache);
  if (recorded == caches_.end()) return;
  const auto file = files_.find(recorded->second);
  OC_CHECK(file != files_.end());
  add_log(cache, &file->second.ended);
  caches_.erase(recorded);
}

Learnt Learner::learnt() {
  std::map<std::string_view, std::string> touches;
  for (const auto& [path, file] : files_) touches[path] = file.ended;
  for (const auto& [cache, path] : caches_) add_log(*cache, &touches[path]);
  Learnt learnt{this, 1, {}};
  for (auto& [path, all] : touches) {
    if (all.empty()) continue;
    for (const std::string_view part : {path, std::string_view(all)})
      learnt.stamp = learnt.stamp * 31 + std::hash<std::string_view>()(part);
    const store::FileFacts& facts = files_.find(path)->second.facts;
    learnt.files.push_back({facts.path, facts.size_bytes, facts.modified_ns, std::move(all)});
  }
  if (learnt.stamp == kept_.load()) learnt.files.clear();
  return learnt;
}

Status keep_learnt(std::vector<Learnt> all) {
  Status first;
  for (Learnt& learnt : all) {
    OC_CHECK(learnt.learner != nullptr);
    Status status = add_to_profile(learnt.learner->path(), std::move(learnt.files));
    if (status.ok()) learnt.learner->note_kept(learnt.stamp);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace outcore::runtime
