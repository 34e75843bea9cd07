// stream: McCalpin's STREAM as a user of the DLM paper writes it: three static arrays, compiled
// with occ++; with c++ -Ddlm= the same in plain memory (docs/guides/static-arrays.md).
#include "bench/options.h"
#include "bench/static/program.h"
#include "bench/stream_passes.h"

namespace outcore::bench {
namespace {

static_assert(StreamSize::of_class(kNasClass), "NAS_CLASS is not one of S, W, A, B");
constexpr StreamSize kSize = *StreamSize::of_class(kNasClass);

dlm double a[kSize.elements], b[kSize.elements], c[kSize.elements];

int run(Program& program) {
  const StreamArrays arrays{a, b, c};
  StreamPasses passes(kSize, program.passes(), Program::kThreads);
  passes.make(arrays);
  program.start();
  passes.run(arrays, [](uint64_t) {});
  program.stop();
  return program.finish(passes.work(), "MiB/s", passes.finish(arrays).check(), passes.rates());
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  Program program("stream", kSize.size_bytes(), kStreamPasses, argc, argv,
                  StreamPasses::kPassesMin);
  return run(program);
}
