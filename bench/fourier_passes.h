// FourierPasses: the work of the 3-D Fourier transform of the NAS Parallel Benchmarks, on arrays
// that lie wherever a program has them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/fourier_probe.h"
#include "bench/fourier_transform.h"
#include "outcore/result.h"

namespace outcore::bench {

// Of as many elements as the grid has points.
struct FourierArrays {
  Complex *waves, *state;
  double* factors;
};

// What a run has found.
struct FourierFound {
  Complex probe;
  Complex checksum;  // the last
  uint64_t checksums_hash = 0;
  uint64_t wrong = 1;  // checksums that are not the published ones

  // `expected`: what the probe expects. Errors: EILSEQ
  Status check(const FourierProbe& expecting, Complex expected) const;
};

// One thread calls; it starts the others. What run() needs beside the arrays is allocated when it
// is made.
class FourierPasses {
 public:
  // REQUIRES: as FourierTransform
  FourierPasses(const FourierGrid& grid, unsigned passes, unsigned threads);

  // Writes what it begins with, and how waves fade.
  void make(const FourierArrays& arrays) const;
  // What is timed: a transform forward; then in each pass the waves fade, and a transform back.
  // `see` is told by the threads how many points are done of a side.
  void run(const FourierArrays& arrays, const std::function<void(uint64_t)>& see);
  // `nas_class`: whose checksums are published; "": none. REQUIRES: run()
  FourierFound finish(const FourierArrays& arrays, const FourierProbe& probe,
                      std::string_view nas_class) const;
  // What `see` is told in all.
  uint64_t points_in_all() const { return (passes_ + 1) * 3 * grid_.points(); }
  // Of floating point, in all passes.
  double operations() const;

 private:
  // Calls work(z) for all planes, on all threads.
  template <typename Work>
  void on_planes(Work work) const;
  void evolve(const FourierArrays& arrays) const;
  Complex checksum_of(const Complex* state) const;

  FourierGrid grid_;
  unsigned passes_, threads_;
  FourierTransform transform_;
  std::vector<Complex> checksums_;  // of the passes
};

}  // namespace outcore::bench
