// is: NPB's integer sort as a user of the DLM paper writes it: keys in static arrays, compiled with
// occ++; with c++ -Ddlm= the same in plain memory (docs/guides/static-arrays.md).
#include "bench/key_passes.h"
#include "bench/options.h"
#include "bench/static/program.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

static_assert(IntegerKeys::of_class(kNasClass), "NAS_CLASS is not one of S, W, A, B");
constexpr IntegerKeys kKeys = *IntegerKeys::of_class(kNasClass);

dlm uint32_t keys[kKeys.count], buckets[kKeys.count], ranks[kKeys.limit()];

int run(Program& program) {
  const KeyArrays arrays{keys, buckets, ranks};
  KeyPasses passes(kKeys, program.passes(), Program::kThreads);
  passes.make(arrays);
  program.start();
  passes.run(arrays, [](uint64_t) {});
  program.stop();
  const KeysFound found = passes.finish(arrays);
  const KeyAnswer answer = KeyAnswer::compute(kKeys, program.passes(), making_threads());
  return program.finish(static_cast<double>(passes.work()), "keys/s", found.check(answer));
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  Program program("is", sizeof keys + sizeof buckets + sizeof ranks, kIntegerSortPasses, argc,
                  argv);
  return run(program);
}
