#include "core/runtime/learner.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
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

namespace {

// Leaves of [from, to) what lies between what the ranges have of its beginning and of its end.
void cut_known_ends(const base::RangeSet& ranges, uint64_t* from, uint64_t* to) {
  const std::map<uint64_t, uint64_t>& all = ranges.all();
  const auto end_of = [](const auto& range) { return range->first + range->second; };
  if (auto next = all.upper_bound(*from); next != all.begin())
    *from = std::max(*from, end_of(std::prev(next)));
  if (auto next = all.lower_bound(*to); next != all.begin() && end_of(std::prev(next)) >= *to)
    *to = std::prev(next)->first;
}

// Some of it may be in the set.
void add_range(base::RangeSet* ranges, uint64_t from, uint64_t to) {
  OC_CHECK(from < to);
  ranges->remove(from, to - from);
  ranges->add(from, to - from);
}

}  // namespace

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
  File& known = files_[file.path];
  TouchLog* const log = log_for(known, cache.page_count() * cache.page_bytes);
  if (log == nullptr) return;
  known.facts = file;
  caches_.emplace(&cache, file.path);
  cache.touches.store(log, std::memory_order_release);
}

// Programs map and unmap a file again and again, so what was recorded stays where it is. A file
// that grows meanwhile gets few more logs. nullptr: no memory.
TouchLog* Learner::log_for(File& file, uint64_t size_bytes) {
  constexpr uint64_t kBytesMin = 64 << 20;
  constexpr uint64_t kBytesMax = prefetch::kTouchUnitEnd * prefetch::kTouchUnitBytes;
  const uint64_t room_bytes = std::bit_ceil(std::clamp(size_bytes, kBytesMin, kBytesMax));
  if (file.logs.empty() || !file.logs.back()->has_room_for(size_bytes)) {
    Result<std::unique_ptr<TouchLog>> log = TouchLog::make(room_bytes);
    if (!log) return nullptr;
    file.logs.push_back(std::move(log).value());
  }
  OC_ASSERT(file.logs.back()->has_room_for(size_bytes));
  return file.logs.back().get();
}

void Learner::replay(paging::Engine& engine, const region::View& view, uint64_t from, uint64_t to,
                     Repeat repeat) {
  const auto recorded = caches_.find(view.cache);
  OC_CHECK(recorded != caches_.end());
  OC_CHECK(from <= to);
  const auto known = known_.find(recorded->second);
  if (known == known_.end()) return;
  to = std::min(to, view.cache->store_bytes.load());
  const auto before = replayed_.find(recorded->second);
  if (repeat == Repeat::kOnce && before != replayed_.end())
    cut_known_ends(before->second.ranges, &from, &to);
  const os::SignalBlock block;
  // A hint: without a thread, or behind too many others, it is none.
  if (from < to && engine.replay(view, from, to, known->second).ok())
    add_range(&replayed_[recorded->second].ranges, from, to);
}

// A program may look at the beginning of a file first, and then map it anew. One that always maps
// it for a moment only must not begin to read it each time.
void Learner::end(const PageCache& cache, bool is_cut_off) {
  constexpr uint32_t kCutOffMax = 8;
  const auto recorded = caches_.find(&cache);
  if (recorded == caches_.end()) return;
  const auto replayed = replayed_.find(recorded->second);
  if (is_cut_off && replayed != replayed_.end() && replayed->second.cut_off < kCutOffMax) {
    ++replayed->second.cut_off;
    replayed->second.ranges = {};
  }
  caches_.erase(recorded);
}

// In the order of its logs: what was needed in an earlier mapping comes first.
std::string Learner::touches_of(const File& file) {
  std::string touches;
  for (const auto& log : file.logs)
    touches = prefetch::encode_touches(prefetch::join_touches(
        prefetch::decode_touches(touches), prefetch::encode_touches(log->touches())));
  return touches;
}

Learnt Learner::learnt() {
  Learnt learnt{this, 1, {}};
  for (const auto& [path, file] : files_) {
    std::string touches = touches_of(file);
    if (touches.empty()) continue;
    for (const std::string_view part : {std::string_view(path), std::string_view(touches)})
      learnt.stamp = learnt.stamp * 31 + std::hash<std::string_view>()(part);
    learnt.files.push_back(
        {path, file.facts.size_bytes, file.facts.modified_ns, std::move(touches)});
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
