// The socket by which a program under `outcore run` is asked for what it holds: whom it answers,
// and what it says of files that it does not have.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

constexpr uid_t kNobody = 65534;

// python3 under `outcore run`, which has mapped the file and touched its beginning.
class RequestSocket : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    const std::string folder = std::filesystem::path(command_path()).parent_path();
    if (!std::filesystem::exists(folder + "/liboutcore_preload.so"))
      GTEST_SKIP() << "the preload library is not built here";
    ::unsetenv("OUTCORE_PRELOAD_LIBRARY");
    std::ofstream(file_) << std::string(1 << 20, 'x');
    start();
  }
  void TearDown() override {
    if (program_ > 0) {
      ::kill(program_, SIGKILL);
      ::waitpid(program_, nullptr, 0);
    }
  }

  // What the program answers to a line from that user. "-": it cannot be asked.
  std::string answer_to(const std::string& line, uid_t user) const {
    const std::string name = "outcore/" + socket_name();
    int result[2];
    if (name == "outcore/" || ::pipe2(result, O_CLOEXEC) != 0) return "-";
    const pid_t asker = ::fork();
    if (asker == 0) {
      if (::dup2(result[1], STDOUT_FILENO) < 0 || ::setresuid(user, user, user) != 0 ||
          !ask(name, line + "\n"))
        static_cast<void>(!::write(STDOUT_FILENO, "-", 1));
      ::_exit(0);
    }
    ::close(result[1]);
    const std::string answer = read_all(result[0]);
    ::close(result[0]);
    ::waitpid(asker, nullptr, 0);
    return answer;
  }

  const std::string file_ = path("file");

 private:
  void start() {
    int in[2], out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    program_ = ::fork();
    if (program_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::execl(command_path().c_str(), "outcore", "run", "-q", "--map", file_.c_str(), "--min-size",
              "4k", "--budget", "8M", "--", "python3", "-c",
              "import mmap, os, sys\n"
              "memory = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, access=1)\n"
              "memory[0:65536]\n"
              "os.write(1, b'x')\n"
              "os.read(0, 1)\n",
              file_.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    char c = 0;
    ASSERT_EQ(::read(out[0], &c, 1), 1) << "the program has not mapped the file";
    ::close(out[0]);  // its end of `in` stays open as long as this process lives
  }
  std::string socket_name() const {
    const std::string begin = "@outcore/" + std::to_string(program_) + ".";
    std::ifstream sockets("/proc/net/unix");
    for (std::string all; std::getline(sockets, all);)
      if (const size_t at = all.find(begin); at != std::string::npos)
        return all.substr(at + std::strlen("@outcore/"));
    return "";
  }
  // Prints the answer. False: the program cannot be reached.
  static bool ask(const std::string& name, const std::string& line) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) return false;
    // Refused, it may be closed before the line is sent.
    static_cast<void>(::send(fd, line.data(), line.size(), MSG_NOSIGNAL));
    const std::string answer = read_all(fd);
    return ::write(STDOUT_FILENO, answer.data(), answer.size()) >= 0;
  }
  static std::string read_all(int fd) {
    std::string text;
    char part[4096];
    for (ssize_t n = 0; (n = ::read(fd, part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(n));
    return text;
  }

  pid_t program_ = -1;
};

TEST_F(RequestSocket, SaysOfAFileThatIsNotTakenThatThereIsNone) {
  const std::string other = path("other");
  std::ofstream(other) << std::string(1 << 20, 'y');
  for (const std::string verb : {"residency", "warm", "evict"}) {
    const std::string question = verb + " 0 0 8 ";
    const auto answer = Json::parse_or_null(answer_to(question + file_, ::geteuid()));
    ASSERT_TRUE(answer.is_object()) << verb;
    EXPECT_EQ(answer["file"], file_);
    EXPECT_EQ(answer_to(question + other, ::geteuid()), "none\n") << verb;
    EXPECT_EQ(answer_to(question + path("nowhere"), ::geteuid()), "none\n") << verb;
  }
  EXPECT_EQ(answer_to("forget 0 0 8 " + file_, ::geteuid()).rfind("error ", 0), 0U);
}

TEST_F(RequestSocket, AnswersNoOtherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "to ask as another user takes root";
  EXPECT_EQ(answer_to("residency 0 0 8 " + file_, kNobody), "");
  EXPECT_EQ(answer_to("evict 0 0 8 " + file_, kNobody), "");
  EXPECT_NE(answer_to("residency 0 0 8 " + file_, 0), "");
}

}  // namespace
}  // namespace outcore::cli
