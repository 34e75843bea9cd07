// Squares and sums a file of words that is four times as large as the memory it may take.
//
//   example_quick_start FILE
#include <outcore/array.h>
#include <outcore/runtime.h>

#include <cstdio>
#include <numeric>

int fail(const std::string& why) {
  return std::fprintf(stderr, "quick_start: %s\n", why.c_str()), 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return fail("name a file to make"), 2;
  auto runtime = outcore::Runtime::start({.budget_bytes = 16 << 20});
  if (!runtime) return fail(runtime.message());
  auto region = runtime->map(
      argv[1], {.access = outcore::Access::kReadWrite, .size_bytes = 64 << 20, .may_create = true});
  if (!region) return fail(region.message());
  auto words = outcore::Array<uint64_t>::of(std::move(*region));
  if (!words) return fail(words.message());

  for (uint64_t i = 0; i < words->size(); ++i) (*words)[i] = i * i;
  const auto sum = std::accumulate(words->begin(), words->end(), uint64_t{0});
  std::printf("%zu squares, sum %llu\n", words->size(), static_cast<unsigned long long>(sum));

  if (auto synced = words->region().sync(); !synced) return fail(synced.message());
  std::fputs(runtime->metrics().to_text().c_str(), stdout);
  return 0;
}
