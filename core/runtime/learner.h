// Learner: what of a runtime's files is brought in first, for a profile; and the profile of earlier
// runs, by which it is brought in ahead.
//
// A runtime has one for each profile. All calls REQUIRE the runtime's mapping lock; not on the
// fault path.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/range_set.h"
#include "core/paging/engine.h"
#include "core/prefetch/touch_log.h"
#include "core/prefetch/touch_profile.h"
#include "core/store/file_store.h"
#include "outcore/result.h"

namespace outcore::runtime {

class Learner;

// What a learner has recorded, to be kept without the lock.
struct Learnt {
  Learner* learner = nullptr;
  uint64_t stamp = 0;  // of what it is
  std::vector<prefetch::LearntFile> files;
};

class Learner {
 public:
  // Reads the profile at this absolute path. complaint() says what is wrong with it.
  explicit Learner(std::string path);

  const std::string& path() const { return path_; }
  // Why nothing is brought in, recorded or kept: one line. Empty: all is well.
  const std::string& complaint() const { return complaint_; }

  // From now on it is recorded what of the cache is brought in first. A hint: of more than
  // TouchProfile::kFilesMax files, without memory, and if another learner records it, it is not.
  // What is recorded stays here: the cache may go, and the next one of the file goes on with it.
  void record(paging::PageCache& cache, const store::FileFacts& file);
  bool is_recording(const paging::PageCache& cache) const { return caches_.contains(&cache); }
  // Begins to bring in what the profile has of the bytes [from, to) of the view's store; with
  // kOnce, what was not brought in before. REQUIRES: is_recording.
  enum class Repeat : uint8_t { kOnce, kAgain };
  void replay(paging::Engine& engine, const region::View& view, uint64_t from, uint64_t to,
              Repeat repeat);
  // The cache goes; perhaps before all was brought in. Allocates nothing. Nothing, if it was not
  // recorded.
  void end(const paging::PageCache& cache, bool is_cut_off);

  // What was recorded so far, of all files that something was brought in of; nothing, if all of it
  // is kept already.
  Learnt learnt();
  size_t replayed_files() const { return replayed_.size(); }

  // What learnt() gave with this number is in the profile. Any thread, without the lock.
  void note_kept(uint64_t stamp) { kept_.store(stamp); }

 private:
  struct File {
    store::FileFacts facts;  // as it was last mapped
    // Each for a larger file than the one before it; none goes as long as a cache may note in it.
    std::vector<std::unique_ptr<prefetch::TouchLog>> logs;
  };
  using Touches = std::shared_ptr<const std::string>;
  struct Replayed {
    base::RangeSet ranges;  // of its bytes, that were brought in
    uint32_t cut_off = 0;   // how often it ended in the middle
  };

  static prefetch::TouchLog* log_for(File& file, uint64_t size_bytes);
  static std::string touches_of(const File& file);

  const std::string path_;
  std::string complaint_;
  std::map<std::string, Touches, std::less<>> known_;       // by path: what the profile says
  std::map<std::string, File, std::less<>> files_;          // by path
  std::map<const paging::PageCache*, std::string> caches_;  // whose file's path that is
  std::map<std::string, Replayed, std::less<>> replayed_;   // by path
  std::atomic<uint64_t> kept_{0};
};

// Adds it to the profiles. The first error of several. Any thread, without the lock; the learners
// must live as long.
Status keep_learnt(std::vector<Learnt> all);

}  // namespace outcore::runtime
