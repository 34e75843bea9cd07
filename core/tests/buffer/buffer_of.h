// BufferOf: a buffer of a test, and how its process joins it.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "core/buffer/buffer.h"
#include "core/os/file_calls.h"
#include "core/tests/buffer/job.h"
#include "core/tests/conformance/scene.h"

namespace outcore::buffer {

using namespace scene;

constexpr uint64_t kLimit = 8 << 20;

class BufferOf : public testing::Test {
 protected:
  std::shared_ptr<Buffer> join(const std::string& name = "b", uint64_t limit = kLimit) {
    auto joined = Buffer::join(name, limit);
    EXPECT_TRUE(joined.ok()) << joined.message();
    return joined.ok() ? joined.value() : nullptr;
  }
  // What a process that joins is told: 0, or the error's number.
  int code_of_join(const std::string& name, std::string* message) {
    const auto joined = Buffer::join(name, kLimit);
    if (joined.ok()) return 0;
    *message = joined.message();
    return joined.code();
  }
  // Puts a page into the memory file, as a fill does.
  static void put(Buffer& buffer, uint64_t page) {
    const std::vector<std::byte> bytes(kPage, std::byte{1});
    ASSERT_EQ(os::write_all(buffer.member().frames_fd(), page * kPage, bytes), 0);
  }

  Job job_{1};
};

}  // namespace outcore::buffer
