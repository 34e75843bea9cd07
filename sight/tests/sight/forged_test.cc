// Memory files with the name of those that runtimes publish, which are none: nobody crashes, and
// one line says so.
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <thread>

#include "core/published/layout.h"
#include "sight/tests/sight/scene.h"

namespace outcore::cli {
namespace {

using published::Layout;

class Forged : public SightScene {
 protected:
  void TearDown() override { ::close(file_); }
  void make(const std::string& bytes) {
    file_ = ::memfd_create(published::kFileName, MFD_CLOEXEC);
    ASSERT_EQ(::write(file_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  static std::string sheet_of(uint32_t format) {
    const auto layout = std::make_unique<Layout>();
    layout->magic.set(Layout::kMagic);
    layout->version.set("9.9.9\x1b[2J");
    layout->process = ::getpid();
    layout->format = format;
    layout->started_ns = ~uint64_t{0};
    return {reinterpret_cast<const char*>(layout.get()), sizeof(Layout)};
  }
  // One line each, and a status that says so.
  void expect_refused(const std::string& why) {
    for (const char* const words : {"stat ", "stat --json ", "top --once --interval 50ms --pid "}) {
      const Outcome outcome = run(std::string(words) + own_number());
      EXPECT_EQ(outcome.status, 1) << words << outcome.out;
      EXPECT_TRUE(has(outcome.err, why)) << words << outcome.err;
      EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
      EXPECT_FALSE(has(outcome.err, "\x1b")) << outcome.err;
    }
    EXPECT_EQ(run("top --once --interval 50ms").status, 0);  // it is left out
  }
  int file_ = -1;
};

TEST_F(Forged, EmptyShortAndOfAnotherMagicAreNone) {
  make("");
  expect_refused("no runtime of Outcore");
  for (const std::string& bytes : {std::string("outcore"), std::string(100'000, '\xFF'),
                                   sheet_of(published::format_of_this_library()).substr(0, 10)}) {
    ::close(file_);
    make(bytes);
    expect_refused("no runtime of Outcore");
  }
}

TEST_F(Forged, AnotherFormatIsToldWithItsVersion) {
  make(sheet_of(published::format_of_this_library() + 1));
  expect_refused("9.9.9");
  const Outcome top = run("top --once --interval 50ms");
  EXPECT_TRUE(has(top.out, "process " + own_number() + " has outcore 9.9.9")) << top.out;
  EXPECT_FALSE(has(top.out, "\x1b")) << top.out;
}

TEST_F(Forged, NumbersThatCannotBeAreShownAsTheyAre) {
  std::string bytes = sheet_of(published::format_of_this_library());
  for (size_t i = offsetof(Layout, buffer_bytes); i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 37 % 255 | 1);
  make(bytes);
  for (const char* const words :
       {"stat ", "stat --files ", "stat --json ", "stat --files --json ",
        "top --once --interval 50ms --pid ", "top --json --interval 50ms --pid "}) {
    const Outcome outcome = run(std::string(words) + own_number());
    EXPECT_EQ(outcome.status, 0) << words << outcome.err;
    EXPECT_FALSE(has(outcome.out, "\x1b")) << words;
  }
}

TEST_F(Forged, TextsThatWouldControlATerminalDoNot) {
  std::string bytes = sheet_of(published::format_of_this_library());
  auto* const layout = reinterpret_cast<Layout*>(bytes.data());
  layout->budget_source.set("\x1b[2Jx");
  layout->shared_buffer.set("\x1b]0;x\x07");
  layout->policy.set(
      "\xc2\x9b"
      "31m");
  make(bytes);
  for (const char* const words : {"explain ", "stat ", "top --once --interval 50ms --pid "}) {
    const Outcome outcome = run(std::string(words) + own_number());
    EXPECT_EQ(outcome.status, 0) << words << outcome.err;
    for (const char* const control : {"\x1b", "\x07", "\xc2\x9b"})
      EXPECT_FALSE(has(outcome.out, control)) << words << outcome.out;
  }
}

TEST_F(Forged, OneThatShrinksWhileItIsReadHarmsNobody) {
  const std::string bytes = sheet_of(published::format_of_this_library());
  make(bytes);
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      EXPECT_EQ(::ftruncate(file_, 100), 0);
      EXPECT_EQ(::pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    }
  });
  for (int i = 0; i < 20; ++i) {
    const Outcome outcome = run("stat --files " + own_number());
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << outcome.status << outcome.err;
    EXPECT_LE(outcome.error_lines(), 1u) << outcome.err;
  }
  is_over = true;
  other.join();
}

}  // namespace
}  // namespace outcore::cli
