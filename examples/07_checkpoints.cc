// A matrix product that may be killed at any instant, and goes on where it was.
// Usage: example_checkpoints FOLDER N [ROWS]   (docs/guides/checkpoints.md)
//   c = a · b of N × N numbers, in a pool in FOLDER; a checkpoint every ROWS (16) rows of c. Prints
//   a checksum of the product, the same however often it was started.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "outcore/checkpoint.h"
#include "outcore/runtime.h"

static int fail(const outcore::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

static double value(uint64_t i, uint64_t j) {
  return static_cast<double>((i * 31 + j * 17) % 1000) / 7 - 50;
}

static void multiply_row(const double* a, const double* b, double* c, uint64_t n) {
  std::fill_n(c, n, 0.0);
  for (uint64_t k = 0; k < n; ++k)
    for (uint64_t j = 0; j < n; ++j) c[j] += a[k] * b[k * n + j];
}

int main(int argc, char** argv) {
  const uint64_t n = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const uint64_t rows = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 16;
  if (n == 0 || n > 100'000 || rows == 0) {
    std::fprintf(stderr, "usage: %s FOLDER N [ROWS]\n", argv[0]);
    return 2;
  }
  const std::string pool = "versioned:" + std::string(argv[1]);
  uint64_t row = 0;  // of c, that is next
  const auto last = outcore::restart(pool);
  if (last) {
    if (auto s = last->read("row", row); !s) return fail(s.error());
    std::printf("goes on at row %llu\n", static_cast<unsigned long long>(row));
  } else if (last.code() != ENOENT) {  // else there is none yet
    return fail(last.error());
  }

  auto runtime = outcore::Runtime::start();  // OUTCORE_BUDGET=64M says how much memory
  if (!runtime) return fail(runtime.error());
  outcore::Region region[3];
  for (int i = 0; i < 3; ++i) {
    outcore::MapOptions options;
    options.access = outcore::Access::kReadWrite;
    options.size_bytes = n * n * sizeof(double);
    options.may_create = true;
    auto mapped = runtime->map(pool + "?object=" + "abc"[i], options);
    if (!mapped) return fail(mapped.error());
    region[i] = std::move(mapped).value();
  }
  auto* const a = reinterpret_cast<double*>(region[0].data());
  auto* const b = reinterpret_cast<double*>(region[1].data());
  auto* const c = reinterpret_cast<double*>(region[2].data());
  if (!last)
    for (uint64_t i = 0; i < n; ++i)
      for (uint64_t j = 0; j < n; ++j) a[i * n + j] = value(i, j), b[i * n + j] = value(j, i + 1);

  while (row < n) {
    multiply_row(a + row * n, b, c + row * n, n);
    if (++row % rows != 0 && row != n) continue;
    const std::string name = "row " + std::to_string(row);
    if (auto made = outcore::checkpoint(name, {region[0], region[1], region[2], {"row", row}});
        !made)
      return fail(made.error());
    std::printf("%s\n", name.c_str());
    std::fflush(stdout);
    // The last two are enough.
    if (const auto all = outcore::list_checkpoints(pool); all && all->size() > 2)
      if (auto s = outcore::remove_checkpoints(pool, {all->front().name}); !s)
        return fail(s.error());
  }
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n * n; ++i) sum = sum * 31 + std::bit_cast<uint64_t>(c[i]);
  std::printf("product %016llx\n", static_cast<unsigned long long>(sum));
  return 0;
}
