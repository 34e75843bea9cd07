// cg: NPB's conjugate gradients as a user of the DLM paper writes them: matrix and vectors in
// static arrays, compiled with occ++; with c++ -Ddlm= the same in plain memory
// (docs/guides/static-arrays.md).
#include "bench/gradient_passes.h"
#include "bench/static/program.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

static_assert(SparseProblem::of_class(kNasClass), "NAS_CLASS is not one of S, W, A, B");
constexpr SparseProblem kProblem = *SparseProblem::of_class(kNasClass);
constexpr uint64_t kRows = kProblem.rows;

dlm double values[kProblem.entries_max()];
dlm uint32_t columns[kProblem.entries_max()];
dlm uint64_t starts[kRows + 1];
dlm double x[kRows], z[kRows], p[kRows], q[kRows], r[kRows];

constexpr uint64_t kBytes =
    sizeof values + sizeof columns + sizeof starts + 5 * kRows * sizeof(double);

// What the matrix is made of, and the answer, are in ordinary memory, as in `outcore bench cg`.
int run(Program& program) {
  const SparseVectors sparse(kProblem);
  const GradientsAnswer answer =
      GradientsAnswer::compute(kProblem, sparse, program.passes(), making_threads());
  GradientPasses passes(kProblem, program.passes(), Program::kThreads);
  passes.make({{values, columns, starts}, {x, z, p, q, r}}, sparse);
  program.start();
  passes.run([](uint64_t) {});
  program.stop();
  return program.finish(passes.operations(), "flop/s", answer.check(passes.finish(answer)));
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  Program program("cg", kBytes, kProblem.passes, argc, argv);
  return run(program);
}
