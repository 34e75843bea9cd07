// The scene of tests of learnt starts: a file, a profile, and runs one after the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/prefetch/touch_profile.h"
#include "core/tests/conformance/scene.h"
#include "outcore/runtime.h"

namespace outcore::scene {

class Learnt : public testing::Test {
 protected:
  static constexpr uint64_t kFileBytes = 32 * kMiB, kPage = 4096;

  Runtime start(uint64_t budget_bytes = 16 * kMiB) const {
    RuntimeOptions options = options_with(budget_bytes);
    options.learn_file = profile_;
    return Runtime::start(options).value();
  }
  std::string make_file(const std::string& name, uint64_t size_bytes = kFileBytes) const {
    write_file(folder_ / name, pattern(size_bytes));
    return folder_ / name;
  }
  static Region map(Runtime& runtime, const std::string& path, MapOptions options = {}) {
    options.advice = Advice::kRandom;  // nothing but what is touched is read
    return runtime.map(path, options).value();
  }
  static void wait_for_replays(const Runtime& runtime) {
    while (runtime.metrics().gauges.replays != 0) std::this_thread::yield();
  }
  static void touch(const Region& region, const std::vector<uint64_t>& pages) {
    for (const uint64_t page : pages)
      ASSERT_EQ(region.data()[page * kPage + 77], byte_at(page * kPage + 77)) << page;
  }
  static std::vector<uint64_t> some_pages(uint64_t count, uint64_t page_end, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::set<uint64_t> chosen;
    while (chosen.size() < count) chosen.insert(random() % page_end);
    std::vector<uint64_t> pages(chosen.begin(), chosen.end());
    std::shuffle(pages.begin(), pages.end(), random);
    return pages;
  }
  static std::vector<uint64_t> all_pages(uint64_t size_bytes) {
    std::vector<uint64_t> pages;
    for (uint64_t page = 0; page < size_bytes / kPage; ++page) pages.push_back(page);
    return pages;
  }
  // A run that touches these, and ends.
  void run(const std::string& path, const std::vector<uint64_t>& pages) const {
    Runtime runtime = start();
    const Region region = map(runtime, path);
    wait_for_replays(runtime);
    touch(region, pages);
  }
  prefetch::TouchProfile profile() const {
    const Bytes bytes = read_file(profile_);
    return prefetch::TouchProfile::decode(
               {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
        .value();
  }
  std::string text_of_profile() const {
    const Bytes bytes = read_file(profile_);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  const Folder folder_;
  const std::string profile_ = folder_ / "profile";
};

}  // namespace outcore::scene
