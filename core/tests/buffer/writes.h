// Writes: a test with processes that write one file in a buffer, by each delivery.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/os/kernel_features.h"
#include "core/os/wait.h"
#include "core/tests/buffer/job.h"
#include "core/tests/conformance/scene.h"

namespace outcore::scene::of_job {

using Cell = std::atomic<uint64_t>;

inline MapOptions to_write() {
  MapOptions options;
  options.access = Access::kReadWrite;
  return options;
}

class Writes : public testing::TestWithParam<Delivery> {
 protected:
  void SetUp() override {
    OUTCORE_NEEDS_THREADS_IN_CHILD();
    if (const std::string why = why_no_buffers(); !why.empty()) GTEST_SKIP() << why;
    const auto kernel = os::detect_kernel_features("all");
    if (GetParam() == Delivery::kMessages && !kernel.value().has_messages)
      GTEST_SKIP() << kernel.value().why_no_messages;
  }
  static RuntimeOptions options() {
    RuntimeOptions options = Job::options(kLimit);
    options.delivery = GetParam();
    return options;
  }
  // A member of the job with its file mapped does `work`.
  template <typename Work>
  static int as_member(const Job& job, Access access, const Work& work) {
    auto runtime = Runtime::start(options());
    if (!runtime) return std::fprintf(stderr, "%s\n", runtime.message().c_str()), kNoRuntime;
    MapOptions how;
    how.access = access;
    auto region = runtime.value().map(job.path(), how);
    if (!region) return std::fprintf(stderr, "%s\n", region.message().c_str()), kNoRegion;
    const int code = work(runtime.value(), region.value());
    if (code != 0) return code;
    const Status ended = region.value().unmap();
    return ended.ok() ? 0 : (std::fprintf(stderr, "%s\n", ended.message().c_str()), kWrong);
  }
  template <typename Work>
  static pid_t begin(Job& job, Access access, const Work& work) {
    return job.begin([&job, access, work] { return as_member(job, access, work); });
  }
  static Cell* cells(const Region& region) { return reinterpret_cast<Cell*>(region.data()); }
  static std::vector<uint64_t> words_of(const std::string& path) {
    std::vector<uint64_t> words(std::filesystem::file_size(path) / 8);
    FILE* const file = std::fopen(path.c_str(), "r");
    EXPECT_EQ(std::fread(words.data(), 8, words.size(), file), words.size());
    std::fclose(file);
    return words;
  }
  // Looks now and then: dozens that wait leave the processors to those they wait for.
  static void wait_for(const std::atomic<uint32_t>& word, uint32_t least) {
    while (word.load() < least) os::pause(100'000);
  }
};

inline std::string name_of_delivery(const testing::TestParamInfo<Delivery>& it) {
  return it.param == Delivery::kInThread ? "InThread" : "Messages";
}

}  // namespace outcore::scene::of_job
