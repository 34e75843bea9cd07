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

// Where data is made: options.dir, OUTCORE_BENCH_DIR, TMPDIR, else /var/tmp.
std::string data_dir(const Options& options);

// Beside a file F lies F.bench.json, a note that says what a benchmark put there and whether it is
// still so. A file without it is somebody's: it is never overwritten unless options.may_overwrite;
// and a file of that name that is no such note is never touched. The parent process owns it; a lock
// keeps other benchmarks away.
class Data {
 public:
  // `tag` names the content; equal tags, equal bytes. `file_name` is used where options.store is
  // empty.
  Data(const Options& options, const std::string& file_name);
  // Removes what it made, unless options.is_kept or the user named the store. Of such a store goes
  // what claim() and mark_changed() made if nothing was written to it. A store on servers goes
  // unless options.is_kept: claim() found that it was not there.
  ~Data();
  // Removes what this process made and kept, unless another benchmark uses it: for several that
  // share their data.
  static void remove_kept();
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  const std::string& uri() const { return uri_; }
  const std::string& path() const { return path_; }

  // Takes the file, so that it may be written; makes it, empty, if it is not there. A store on
  // servers must not be there, or goes if options.may_overwrite: whoever writes it makes it, as
  // long as it must be. Errors: EEXIST
  // (somebody's, or somebody's in the place of the note), EBUSY (another benchmark), as
  // check_store() and open_store(), and what the system said. Then nothing was changed.
  Status claim();
  // True if the file holds what `tag` says, unchanged since it was made.
  bool is_clean(const std::string& tag) const;
  void mark_clean(const std::string& tag);
  void mark_changed();  // before the first write. REQUIRES: it is claimed
  // After a failure: removes what claim() has made, whatever was written to it.
  void remove_new();
  bool is_remote() const { return bench::is_remote(uri_); }
  // A store on servers: it is not there any more, so that the next to write it finds zeros.
  Status clear() { return remove_remote(uri_); }
  void forget() const {
    if (!is_remote()) bench::forget(path_);
  }

 private:
  // What shows whether somebody wrote: of a folder its entries, of a file size and time.
  struct Trace {
    uint64_t size = 0;
    int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Trace&) const = default;
  };
  static constexpr const char* kNoteEnd = ".bench.json";
  std::string note_path() const { return path_ + kNoteEnd; }
  bool is_plain() const { return !plain_path(uri_).empty(); }
  Trace trace() const;
  Status check_owner(bool is_empty);
  Status claim_remote();
  Status open_file();
  Status open_folder(bool exists);
  void write_note(const std::string& tag, bool is_so);
  void remove_note() const;

  std::string uri_, path_;
  std::string elsewhere_;  // the remedy: how the user names another place
  bool is_own_, may_overwrite_, is_kept_, is_claimed_ = false;
  bool is_new_ = false;    // claim() made it
  bool had_note_ = false;  // it was a benchmark's before
  bool is_made_ = false;   // mark_clean() was called
  Trace claimed_;
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
