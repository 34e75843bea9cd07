// A store of one's own: a table of squares that is in no file. Its bytes are computed when a page
// is touched.
//
//   example_custom_store [COUNT]
#include <outcore/runtime.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

// 64-bit words; word i is i * i.
class Squares final : public outcore::Store {
 public:
  explicit Squares(uint64_t count) : count_(count) {}

  uint64_t size_bytes() const override { return count_ * sizeof(uint64_t); }

  // Any offset and any size may be asked for, a part of a word too.
  int read(uint64_t offset, std::span<std::byte> into) override {
    while (!into.empty()) {
      const uint64_t number = offset / sizeof(uint64_t);
      const uint64_t square = number * number;
      const uint64_t skipped = offset % sizeof square;
      const auto size = std::min<size_t>(sizeof square - skipped, into.size());
      std::memcpy(into.data(), reinterpret_cast<const std::byte*>(&square) + skipped, size);
      into = into.subspan(size);
      offset += size;
    }
    return 0;
  }

  int write(uint64_t, std::span<const std::byte>) override { return -EROFS; }

  // read() neither allocates nor locks: the thread that touches a page may call it itself.
  outcore::StoreTraits traits() const override { return {.is_fault_safe = true}; }
  std::string uri() const override { return "squares"; }

 private:
  uint64_t count_;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "custom_store: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : uint64_t{1} << 30;
  if (count == 0) return fail("the count of squares must be a number from 1"), 2;
  auto runtime = outcore::Runtime::start({.budget_bytes = uint64_t{16} << 20});
  if (!runtime) return fail(runtime.message());
  auto region = runtime->map(std::make_shared<Squares>(count));
  if (!region) return fail(region.message());

  const auto squares = region->as<const uint64_t>();
  uint64_t wrong_count = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t number = i * 0x9e3779b97f4a7c15 % count;
    wrong_count += squares[number] != number * number;
  }
  std::printf("%llu bytes of squares mapped, 1000 looked up, %llu wrong\n",
              static_cast<unsigned long long>(region->size_bytes()),
              static_cast<unsigned long long>(wrong_count));
  if (const outcore::Status status = region->unmap(); !status) return fail(status.message());
  return wrong_count == 0 ? 0 : 1;
}
