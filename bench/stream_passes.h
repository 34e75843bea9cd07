// StreamPasses: the work of McCalpin's STREAM, on arrays that lie wherever a program has them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/stream_size.h"
#include "outcore/result.h"

namespace outcore::bench {

// Of as many elements as StreamSize says.
struct StreamArrays {
  double *a, *b, *c;
};

// What a run has found.
struct StreamFound {
  uint64_t wrong = 1;  // elements

  // Errors: EILSEQ
  Status check() const;
};

// COPY, SCALE, ADD and TRIAD. As in STREAM, bytes are those that a kernel names (two arrays or
// three, each once), the first pass is not counted, and every element is compared with what it must
// be. Beyond it, the elements of a page differ from those of others, so that a page in another's
// place is a wrong answer. One thread calls; it starts the others.
class StreamPasses {
 public:
  static constexpr unsigned kPassesMin = 2;

  // REQUIRES: passes >= kPassesMin; threads != 0
  StreamPasses(StreamSize size, unsigned passes, unsigned threads);

  // Writes all arrays, and does the pass that is not counted.
  void make(const StreamArrays& arrays) const;
  // What is timed: the other passes. `see` is told by the threads how many elements are written.
  void run(const StreamArrays& arrays, const std::function<void(uint64_t)>& see);
  StreamFound finish(const StreamArrays& arrays) const;

  // What `see` is told in all.
  uint64_t elements_in_all() const { return (passes_ - 1) * kKernelCount * size_.elements; }
  // MiB that are counted in all.
  double work() const;
  // MiB/s of each kernel, by name: in its best pass, and the mean. REQUIRES: run()
  std::vector<std::pair<std::string, double>> rates() const;

 private:
  static constexpr size_t kKernelCount = 4;

  // Calls work(first, last) for the threads' shares, in steps.
  template <typename Work>
  void on_shares(Work work) const;
  double seconds_of(size_t kernel, const StreamArrays& arrays,
                    const std::function<void(uint64_t)>& see) const;

  StreamSize size_;
  unsigned passes_, threads_;
  std::array<double, kKernelCount> best_{}, sum_{};  // seconds of the counted passes
};

}  // namespace outcore::bench
