// himeno: the Himeno benchmark as a user of the DLM paper writes it: fourteen static arrays,
// compiled with occ++; with c++ -Ddlm= the same in plain memory (docs/guides/static-arrays.md).
#include <iterator>

#include "bench/options.h"
#include "bench/poisson_loop.h"
#include "bench/static/program.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

static_assert(PoissonGrid::of_class(kNasClass), "NAS_CLASS is not one of S, W, A, B");
constexpr PoissonGrid kGrid = *PoissonGrid::of_class(kNasClass);
constexpr uint64_t kCells = kGrid.cells();

dlm float p[kCells], bnd[kCells], wrk1[kCells], wrk2[kCells];
dlm float a[4][kCells], b[3][kCells], c[3][kCells];

// In the order of PoissonGrid::Array.
constexpr float* kArrays[] = {p,    bnd,  wrk1, wrk2, a[0], a[1], a[2],
                              a[3], b[0], b[1], b[2], c[0], c[1], c[2]};
static_assert(std::size(kArrays) == PoissonGrid::kArrays);

int run(Program& program) {
  PoissonLoop loop(kGrid, program.passes(), Program::kThreads);
  loop.make([](unsigned name) { return kArrays[name]; });
  program.start();
  loop.run(
      p, wrk2, [](unsigned name, uint64_t cell) { return kArrays[name][cell]; }, [](uint64_t) {});
  program.stop();
  const PoissonFound expected = PoissonLoop::compute(kGrid, program.passes(), making_threads());
  return program.finish(loop.operations(), "flop/s", loop.finish(p).check(expected));
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  Program program("himeno", PoissonGrid::kArrays * sizeof p, kJacobiPasses, argc, argv);
  return run(program);
}
