// Checkpoints: what they cost a program, beside what the device can do; and whether they are there
// after it was killed. Each measurement runs in forked children, on data that is verified.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "outcore/result.h"

namespace outcore::bench {

struct CheckpointOptions {
  uint64_t size_bytes = uint64_t{4} << 30;  // of the region
  uint64_t budget_bytes = 0;                // 0: a quarter more than the region, and the memory
  uint64_t memory_bytes = 0;                // of ordinary memory, in each checkpoint; 0: none
  double changed = 0.01;                    // of all pages, before a later checkpoint
  unsigned threads = 1;                     // that write meanwhile
  double seconds_between = 2;               // that they write in quiet before each of them
  uint64_t kills = 0;
  uint64_t kill_bytes = uint64_t{16} << 20;  // of the region of the program that is killed
  uint64_t seed = 1;
  // An image of Ceph's, which is made, and removed at the end (rbd://POOL/IMAGE). Empty: a pool in
  // a folder in `dir`.
  std::string store;
  std::string dir;  // empty: OUTCORE_BENCH_DIR, TMPDIR, /var/tmp
};

// One line of the table.
struct Figure {
  std::string name;
  double value = 0;
  double asked = 0;
  bool is_most = false;  // asked is the most, not the least
  std::string unit;
  std::string how;  // what it is made of
  bool is_met() const { return is_most ? value <= asked : value >= asked; }
};
using SeeFigure = std::function<void(const Figure&)>;

// A folder of a benchmark's own, which goes with all that is in it.
class OwnFolder {
 public:
  // Within the directory of the options (`dir`, as there).
  static Result<OwnFolder> make(const std::string& dir);
  OwnFolder(OwnFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  OwnFolder& operator=(OwnFolder&&) = delete;
  ~OwnFolder();
  const std::string& path() const { return path_; }

 private:
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// For a forked child: an interrupt, and the end of its parent, end it.
void end_with_parent();

// Runs `work` in such a child, whose figures are shown here as they come. EINTR: an interrupt that
// the parent has caught (interrupts.h); the child is gone then.
Status in_child(const std::function<Status(const SeeFigure&)>& work, const SeeFigure& see);

// First checkpoint, later ones, the program beside them, and the store that holds ten. Errors: what
// keeps it from measuring; EILSEQ: a checkpoint is not what was written.
Status measure_checkpoints(const CheckpointOptions& options, const SeeFigure& see);

// Kills a program that checkpoints every 100 ms, at random instants, `options.kills` times; after
// each a restart and a look at every byte. EILSEQ: the first that is not right, and its seed.
Status measure_kills(const CheckpointOptions& options, const SeeFigure& see,
                     const std::function<void(uint64_t done)>& progress);

}  // namespace outcore::bench
