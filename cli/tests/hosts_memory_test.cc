// Programs whose memory rests with hosts: real servers, the real library, and sort(1), whose answer
// is compared with that of a plain run.
#include "cli/tests/hosts_case.h"

namespace outcore::cli {
namespace {

class HostsMemory : public HostsCase {
 protected:
  void SetUp() override {
    HostsCase::SetUp();
    if (IsSkipped()) return;
    if (!std::filesystem::exists(library())) GTEST_SKIP() << "the preload library is not built";
    std::ofstream file(path("lines"));
    uint64_t number = 1;
    for (int i = 0; i < kLines; ++i) {
      number = number * 6364136223846793005 + 1442695040888963407;
      file << (number >> 20) << " a line that is long enough to fill some memory\n";
    }
    file.close();
    ASSERT_EQ(outcome_of("LC_ALL=C sort " + path("lines") + " > " + path("expected")).status, 0);
  }
  static std::string library() {
    const std::string command = command_path();
    return command.substr(0, command.rfind('/') + 1) + "liboutcore_preload.so";
  }
  static std::string with_library() { return "LC_ALL=C OUTCORE_PRELOAD_LIBRARY=" + library(); }
  void expect_sorted() const {
    EXPECT_EQ(outcome_of("cmp " + path("expected") + " " + path("sorted")).out, "");
    EXPECT_EQ(std::filesystem::file_size(path("sorted")),
              std::filesystem::file_size(path("lines")));
  }

  static constexpr int kLines = 200'000;  // 13 MB
};

TEST_F(HostsMemory, HoldsWhatIsMoreThanTheBudget) {
  const Outcome outcome = start_with(
      "localhost 12M\nlocalhost 16M\n127.0.0.2 64M\n",
      "--alloc 1M --json report.json -- sort -S 40M --parallel=1 lines -o sorted", with_library());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_sorted();
  const auto report = Json::parse_or_null(text_of_file(path("report.json")));
  ASSERT_TRUE(report.is_object());
  EXPECT_LE(report["processes"][0]["peak_bytes"], 12 << 20);
  EXPECT_GE(report["processes"][0]["alloc_bytes_max"], 40 << 20);
}

TEST_F(HostsMemory, SurvivesAHostWithACopy) {
  begin("localhost 12M\n127.0.0.1 128M\n127.0.0.2 128M\n",
        "mkfifo in; exec sort -S 40M --parallel=1 -o sorted < in", with_library(),
        "-q --replicas 1 --alloc 1M");
  ASSERT_TRUE(becomes([&] { return std::filesystem::exists(path("in")); }));
  const std::string lines = text_of_file(path("lines"));
  const size_t half = lines.size() * 2 / 3;
  std::ofstream in(path("in"));
  in.write(lines.data(), static_cast<std::streamsize>(half)).flush();
  EXPECT_TRUE(becomes([&] { return store().servers[0].info("db0") != ""; }))
      << "nothing rests there";
  ::kill(processes()[0], SIGKILL);
  in.write(lines.data() + half, static_cast<std::streamsize>(lines.size() - half));
  in.close();
  EXPECT_EQ(wait_for_program(), 0);
  expect_sorted();
  EXPECT_NE(errors().find("goes on by its copy on 127.0.0.2"), std::string::npos) << errors();
  EXPECT_TRUE(are_servers_gone());
}

}  // namespace
}  // namespace outcore::cli
