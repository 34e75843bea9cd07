// A program that has nothing but the installed library: it writes a file through a region and reads
// it back.
#include <outcore/array.h>
#include <outcore/region.h>
#include <outcore/runtime.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace {

int fail(const std::string& why) {
  std::fprintf(stderr, "consumer: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail("name the file to write");
  constexpr uint64_t kCount = 1 << 20;  // 8 MiB of words, through 4 MiB of memory
  auto runtime = outcore::Runtime::start({.budget_bytes = uint64_t{4} << 20});
  if (!runtime) return fail(runtime.message());

  for (const auto access : {outcore::Access::kReadWrite, outcore::Access::kReadOnly}) {
    const bool is_writer = access == outcore::Access::kReadWrite;
    auto region = runtime->map(
        argv[1], {.access = access, .size_bytes = kCount * 8, .may_create = is_writer});
    if (!region) return fail(region.message());
    if (is_writer) {
      auto words = outcore::Array<uint64_t>::of(std::move(region).value());
      if (!words) return fail(words.message());
      for (uint64_t i = 0; i < kCount; ++i) (*words)[i] = i * i;
      if (const auto synced = words->region().sync(); !synced) return fail(synced.message());
    } else {
      const auto words = outcore::Array<const uint64_t>::of(std::move(region).value());
      if (!words) return fail(words.message());
      for (uint64_t i = 0; i < kCount; ++i)
        if (words.value()[i] != i * i) return fail("wrong word " + std::to_string(i));
    }
  }
  std::printf("outcore %s: %llu words written and read back\n", outcore::version(),
              static_cast<unsigned long long>(kCount));
  return 0;
}
