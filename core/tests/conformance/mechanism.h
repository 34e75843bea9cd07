// Mechanism: one combination of delivery, frames and page size. The suite runs for each.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tests/conformance/scene.h"

namespace outcore::scene {

struct Mechanism {
  Delivery delivery = Delivery::kAuto;
  FrameKind frames = FrameKind::kAuto;
  uint64_t page_bytes = 4096;
};

inline std::string name_of(const Mechanism& m) {
  std::string name = m.delivery == Delivery::kInThread   ? "InThread"
                     : m.delivery == Delivery::kMessages ? "Messages"
                                                         : "Mprotect";
  name += m.frames == FrameKind::kShared    ? "Shared"
          : m.frames == FrameKind::kPrivate ? "Private"
                                            : "Auto";
  return name + std::to_string(m.page_bytes / kKiB) + "KiB";
}
// For messages of gtest.
inline void PrintTo(const Mechanism& m, std::ostream* out) { *out << name_of(m); }

inline std::vector<Mechanism> all_mechanisms() {
  std::vector<Mechanism> all;
  for (const uint64_t page_bytes : {4 * kKiB, 64 * kKiB, kMiB}) {
    for (const Delivery delivery : {Delivery::kInThread, Delivery::kMessages})
      for (const FrameKind frames : {FrameKind::kShared, FrameKind::kPrivate})
        all.push_back({delivery, frames, page_bytes});
    all.push_back({Delivery::kMprotect, FrameKind::kShared, page_bytes});
  }
  return all;
}

// Those that the suite runs for: all at the system's page size; of the larger pages, whose code is
// the same for each, one of each delivery that differs and of each kind of frames: one at 64 KiB,
// the other at 1 MiB. All of all with OUTCORE_MECHANISMS=all.
inline std::vector<Mechanism> chosen_mechanisms() {
  std::vector<Mechanism> chosen = all_mechanisms();
  const char* wanted = std::getenv("OUTCORE_MECHANISMS");
  if (wanted != nullptr && std::string(wanted) == "all") return chosen;
  std::erase_if(chosen, [](const Mechanism& m) {
    const std::string name = name_of(m);
    return m.page_bytes > 4 * kKiB && name != "InThreadShared64KiB" &&
           name != "MessagesPrivate1024KiB";
  });
  return chosen;
}

// The fixture of the suite: a runtime with a budget of a few pages, and a file of several times
// that size.
class OnMechanism : public testing::TestWithParam<Mechanism> {
 protected:
  void SetUp() override {
    Result<Runtime> started = Runtime::start(options());
    ASSERT_TRUE(started.ok()) << started.message();
    runtime_.emplace(std::move(started).value());
    // A small mapping shows what the kernel lacks.
    Result<Region> probe =
        runtime_->map(std::make_shared<Empty>(), map_options(Access::kReadWrite));
    if (!probe.ok() && (probe.code() == EPERM || probe.code() == ENOTSUP))
      GTEST_SKIP() << probe.message();
    ASSERT_TRUE(probe.ok()) << probe.message();
  }

  virtual RuntimeOptions options() const { return options_with(budget_bytes()); }

  uint64_t page_bytes() const { return GetParam().page_bytes; }
  uint64_t budget_bytes() const { return page_bytes() < kMiB ? 2 * kMiB : 16 * kMiB; }
  uint64_t data_bytes() const { return 3 * budget_bytes(); }
  // A size that cannot be resident at once: more than the budget.
  bool tracks_system_pages() const { return GetParam().delivery != Delivery::kMprotect; }

  MapOptions map_options(Access access) const {
    MapOptions options;
    options.access = access;
    options.page_bytes = GetParam().page_bytes;
    options.delivery = GetParam().delivery;
    options.frames = GetParam().frames;
    return options;
  }
  Result<Region> map(const std::string& uri, Access access) {
    return runtime_->map(uri, map_options(access));
  }
  Result<Region> map(std::shared_ptr<Store> store, Access access) {
    return runtime_->map(std::move(store), map_options(access));
  }
  // A file that holds the pattern.
  std::string file_of(uint64_t size_bytes, const std::string& name = "data") {
    const std::string path = folder_ / name;
    write_file(path, pattern(size_bytes));
    return path;
  }
  void evict_all(Region& region) {
    const Status s = region.advise(0, region.size_bytes(), Advice::kDontNeed);
    ASSERT_TRUE(s.ok()) << s.message();
  }

  Folder folder_;
  std::optional<Runtime> runtime_;

 private:
  struct Empty : Store {
    uint64_t size_bytes() const override { return 4096; }
    int read(uint64_t, std::span<std::byte>) override { return 0; }
    int write(uint64_t, std::span<const std::byte>) override { return 0; }
    std::string uri() const override { return "empty:"; }
  };
};

#define OUTCORE_ON_ALL_MECHANISMS(Suite)                                \
  INSTANTIATE_TEST_SUITE_P(                                             \
      Mechanisms, Suite, testing::ValuesIn(scene::chosen_mechanisms()), \
      [](const testing::TestParamInfo<scene::Mechanism>& of) { return scene::name_of(of.param); })

}  // namespace outcore::scene
