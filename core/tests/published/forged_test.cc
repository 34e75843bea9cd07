// Memory that only looks like a runtime's: it is told as none, or as another version's, and who
// reads it does not come to harm.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/published/layout.h"
#include "core/tests/conformance/scene.h"
#include "core/tests/published/child.h"
#include "outcore/sight.h"

namespace outcore {
namespace {

using namespace scene;
using published::Layout;

class Forged : public testing::Test {
 protected:
  Forged() : fd_(::memfd_create(published::kFileName, MFD_CLOEXEC)), layout_(new Layout) {
    layout_->magic.set(Layout::kMagic);
    layout_->version.set("9.9.9");
    layout_->process = ::getpid();
    layout_->slots_used = Layout::kSlots;
    layout_->format = published::format_of_this_library();
  }
  void write(uint64_t bytes = sizeof(Layout)) {
    ASSERT_EQ(os::set_size(fd_.get(), bytes), 0);
    const auto* const from = reinterpret_cast<const std::byte*>(layout_.get());
    ASSERT_EQ(os::write_all(fd_.get(), 0, {from, std::min<uint64_t>(bytes, sizeof(Layout))}), 0);
  }
  // What is told of this process: 0, or the error's number.
  static int code(std::string* message = nullptr) {
    const auto seen = look_at(::getpid());
    const std::string told = seen.ok() ? "" : seen.message();
    if (message != nullptr) *message = told;
    EXPECT_EQ(told.find('\n'), std::string::npos) << told;
    const std::vector<pid_t> all = list_published();
    EXPECT_EQ(std::find(all.begin(), all.end(), ::getpid()) != all.end(), seen.ok());
    return seen.ok() ? 0 : seen.code();
  }
  os::Descriptor fd_;
  const std::unique_ptr<Layout> layout_;
};

TEST_F(Forged, AnEmptyOneIsNone) {
  EXPECT_EQ(code(), ENOENT);
  ASSERT_EQ(os::set_size(fd_.get(), 4 << 20), 0);
  EXPECT_EQ(code(), ENOENT) << "of zero bytes";
}

TEST_F(Forged, OneThatIsShortIsReadAsZerosBeyondItsEnd) {
  write();
  ASSERT_EQ(code(), 0);
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{21}}) {
    write(bytes);
    EXPECT_EQ(code(), ENOENT) << bytes;
  }
  layout_->slots[0].users = 1;
  write(offsetof(Layout, slots) + 100);
  EXPECT_EQ(code(), 0);
}

TEST_F(Forged, OfAnotherFormatIsSaidToBeOfAnotherVersion) {
  layout_->format = published::format_of_this_library() + 1;
  write();
  std::string message;
  EXPECT_EQ(code(&message), EPROTO);
  EXPECT_NE(message.find("9.9.9"), std::string::npos) << message;
  EXPECT_NE(message.find("use the command that belongs to it"), std::string::npos) << message;
}

TEST_F(Forged, TheVersionOfAnotherFormatCannotEndTheLine) {
  layout_->format = published::format_of_this_library() + 1;
  layout_->version.set("1\n2\x1B[31m");
  write();
  std::string message;
  EXPECT_EQ(code(&message), EPROTO);
  EXPECT_EQ(message.find('\x1B'), std::string::npos);
}

TEST_F(Forged, OneThatIsNotReadyOrOfAnotherMagicIsNone) {
  layout_->format = 0;
  write();
  EXPECT_EQ(code(), ENOENT);
  layout_->format = published::format_of_this_library();
  layout_->magic.set("outcore sheep");
  write();
  EXPECT_EQ(code(), ENOENT);
}

TEST_F(Forged, WithTheNumberOfAnotherProcessIsNone) {
  layout_->process = ::getpid() + 1;
  write();
  EXPECT_EQ(code(), ENOENT);
}

TEST_F(Forged, OneDoesNotHideTheRuntimeThatIsThere) {
  layout_->format = published::format_of_this_library() + 1;
  write();
  const Folder folder;
  const Runtime runtime = Runtime::start(options_with(kMiB)).value();
  const auto seen = look_at(::getpid());
  // Of a process with libraries of two versions what can be seen is told.
  ASSERT_TRUE(seen.ok()) << seen.message();
  EXPECT_EQ(seen.value().size(), 1u);
  layout_->process = 1;
  write();
  const auto again = look_at(::getpid());
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again.value().size(), 1u);
}

TEST_F(Forged, OneThatShrinksWhileItIsReadHarmsNobody) {
  for (published::StoreSlot& slot : layout_->slots) slot.users = 1;
  write();
  std::atomic<bool> is_over{false};
  std::atomic<int> rounds{0};
  std::thread shrinker([&] {
    while (!is_over) {
      static_cast<void>(os::set_size(fd_.get(), 0));
      write();
      ++rounds;
    }
  });
  int seen = 0;
  for (int i = 0; i < 300 || rounds < 10; ++i) seen += look_at(::getpid()).ok();
  is_over = true;
  shrinker.join();
  EXPECT_LE(seen, rounds + 300);
  write();
  EXPECT_EQ(code(), 0);
}

TEST_F(Forged, RandomBytesHarmNobodyAndStayWithinTheirLines) {
  std::mt19937_64 random(1);
  auto* const words = reinterpret_cast<uint64_t*>(layout_.get());
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < sizeof(Layout) / 8; ++i) words[i] = random();
    layout_->magic.set(Layout::kMagic);
    layout_->process = ::getpid();
    layout_->format = published::format_of_this_library();
    write();
    const auto seen = look_at(::getpid());
    ASSERT_TRUE(seen.ok()) << seen.message();
    EXPECT_LE(seen.value().front().metrics.regions.size(), size_t{Layout::kSlots});
    EXPECT_FALSE(seen.value().front().metrics.to_text().empty());
    EXPECT_FALSE(seen.value().front().metrics.to_json().empty());
  }
}

}  // namespace
}  // namespace outcore
