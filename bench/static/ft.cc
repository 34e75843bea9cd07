// ft: NPB's 3-D Fourier transform as a user of the DLM paper writes it: the grid in static arrays,
// compiled with occ++; with c++ -Ddlm= the same in plain memory (docs/guides/static-arrays.md).
#include "bench/fourier_passes.h"
#include "bench/static/program.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

static_assert(FourierGrid::of_class(kNasClass), "NAS_CLASS is not one of S, W, A, B");
constexpr FourierGrid kGrid = *FourierGrid::of_class(kNasClass);

dlm Complex waves[kGrid.points()], state[kGrid.points()];
dlm double factors[kGrid.points()];

int run(Program& program) {
  const FourierArrays arrays{waves, state, factors};
  FourierPasses passes(kGrid, program.passes(), Program::kThreads);
  passes.make(arrays);
  program.start();
  passes.run(arrays, [](uint64_t) {});
  program.stop();
  const FourierProbe probe(kGrid, program.passes());
  const FourierFound found = passes.finish(arrays, probe, kNasClass);
  return program.finish(passes.operations(), "flop/s",
                        found.check(probe, probe.expected(making_threads())));
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  Program program("ft", sizeof waves + sizeof state + sizeof factors, kGrid.passes, argc, argv);
  return run(program);
}
