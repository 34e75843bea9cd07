// Data: the bytes that a workload works on, made from a seed in a file that is safe to overwrite.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "bench/medium.h"
#include "bench/options.h"
#include "bench/random.h"
#include "outcore/result.h"

namespace outcore::bench {

// Beside a file F lies F.bench.json, which says what a benchmark put there and whether it is still
// so. A file without it is somebody's: it is never overwritten unless options.may_overwrite. The
// parent process owns it; a lock keeps other benchmarks away.
class Data {
 public:
  // `tag` names the content; equal tags, equal bytes. `file_name` is used where options.store is
  // empty.
  Data(const Options& options, const std::string& file_name);
  ~Data();  // removes what it made, unless options.is_kept or the user named the store
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  const std::string& uri() const { return uri_; }
  const std::string& path() const { return path_; }

  // Takes the file, so that it may be written. Errors: EEXIST (somebody's), EBUSY (another
  // benchmark).
  Status claim();
  // True if the file holds what `tag` says, unchanged since it was made.
  bool is_clean(const std::string& tag) const;
  void mark_clean(const std::string& tag);
  void mark_changed();  // before the first write
  void forget() const { bench::forget(path_); }

 private:
  std::string note_path() const { return path_ + ".bench.json"; }
  std::string uri_, path_;
  bool is_own_, may_overwrite_, is_kept_, is_claimed_ = false;
  int lock_ = -1;
};

// The i-th word of the data of `seed`: a bijection of i, so a page's first word tells its number.
inline uint64_t word_at(uint64_t seed, uint64_t i) { return mix(mix(seed) + i); }

// Writes words 0 … size / 8 of `seed`; tells how many bytes are done.
Status write_words(Medium& medium, uint64_t size_bytes, uint64_t seed);
// Calls `see(index of the first, words)` over all words, by plain reads, in order.
Status read_words(Medium& medium, uint64_t size_bytes,
                  const std::function<void(uint64_t, std::span<const uint64_t>)>& see);

}  // namespace outcore::bench
