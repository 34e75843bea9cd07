// Masters of the smallest cluster are killed while a sort rests there that does not fit in its
// memory, until the sort has felt OUTCORE_MASTER_KILLS of them. OUTCORE_MASTER_SEED is where chance
// begins.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/base/json.h"
#include "far/tests/redis/redis_case.h"
#include "tests/places.h"

namespace outcore::redis_test {
namespace {

constexpr double kFeltSeconds = 0.3;

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// One run of the command: its words, and what it said.
class Sorting {
 public:
  explicit Sorting(std::vector<std::string> words) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], 1);
      ::dup2(ends[1], 2);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    reader_ = std::thread([this, from = ends[0]] {
      char bytes[4096];
      for (ssize_t n; (n = ::read(from, bytes, sizeof bytes)) > 0;)
        said_.append(bytes, static_cast<size_t>(n));
      ::close(from);
    });
  }
  // The status as waitpid() has it; -1: it did not end.
  int wait(int seconds) {
    int status = -1;
    if (!becomes([&] { return ::waitpid(process_, &status, WNOHANG) == process_; }, seconds)) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, &status, 0);
      status = -1;
    }
    reader_.join();
    return status;
  }
  const std::string& said() const { return said_; }

 private:
  pid_t process_ = -1;
  std::thread reader_;
  std::string said_;
};

class MasterKills : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    ServerOptions options;
    options.masters = 3;
    start(options);
  }
  std::vector<std::string> sort(uint64_t number) const {
    return {scene::command_path(),
            "bench",
            "sort",
            "--size",
            "32M",
            "--budget",
            "8M",
            "--page",
            "16k",
            "--memory",
            "outcore",
            "--unlimited",
            "--json",
            "--store",
            servers_->uri("k" + std::to_string(number), "replicas=1")};
  }
  // Its first writer fills it, the second sorts.
  bool has_been_mapped(const std::string& name) {
    for (int i = 0; i < servers_->count(); ++i)
      if (servers_->ask(i, {"HGET", "oc:{catalog}:" + name, "token"}).text == "2") return true;
    return false;
  }
  bool is_whole() {
    int replicas = 0;
    for (int i = 0; i < servers_->count(); ++i)
      replicas +=
          servers_->info(i, "role") == "master" && servers_->info(i, "connected_slaves") == "1" &&
          servers_->ask(i, {"CLUSTER", "INFO"}).text.find("cluster_state:ok") != std::string::npos;
    return replicas == 3;
  }
};

TEST_F(MasterKills, OfTheSmallestClusterCostASortNothingButTime) {
  const uint64_t wanted = number_of("OUTCORE_MASTER_KILLS", 2), tries_max = 5 * wanted + 10;
  std::mt19937_64 random(number_of("OUTCORE_MASTER_SEED", 1));
  double longest = 0, window = 0.5;  // seconds in which the last one sorted
  uint64_t felt = 0, tries = 0;
  for (; felt < wanted && tries < tries_max; ++tries) {
    ASSERT_TRUE(becomes([&] { return is_whole(); })) << "before kill " << tries;
    const std::string name = "k" + std::to_string(tries);
    Sorting run(sort(tries));
    ASSERT_TRUE(becomes([&] { return has_been_mapped(name); }, 60)) << "it never sorted";
    const double when = window * static_cast<double>(random() % 1000) / 1000;
    std::this_thread::sleep_for(std::chrono::duration<double>(when));  // banned-ok: when it dies
    int victim = static_cast<int>(random() % 6);
    while (servers_->info(victim, "role") != "master") victim = (victim + 1) % 6;
    servers_->kill(victim);
    const int status = run.wait(120);
    // Before and behind its line the store may tell of servers that have gone.
    const size_t from = std::min(run.said().find('{'), run.said().size());
    const auto result =
        base::Json::parse_or_null(run.said().substr(from, run.said().find('\n', from) - from));
    ASSERT_TRUE(status == 0 && result.is_object() && result.value("checked", false))
        << "kill " << tries << " of server " << victim << " after " << when << " s: status "
        << status << ": " << run.said();
    // A server that has gone keeps a sort that needs it waiting for longer than anything else does.
    const double pause = result.value("longest_pause_seconds", 0.0);
    const bool is_felt = pause > kFeltSeconds;
    felt += is_felt;
    longest = std::max(longest, pause);
    window = std::max(0.1, result.value("seconds", 0.0) - (is_felt ? pause : 0));
    std::printf("kill %lu: server %d after %.2f s of sorting, longest pause %.2f s%s\n", tries + 1,
                victim, when, pause, is_felt ? "" : ": not felt, does not count");
    std::fflush(stdout);
    servers_->start(victim);
  }
  std::printf("%lu kills while it sorted, of %lu, all answers right; longest pause %.2f s\n", felt,
              tries, longest);
  EXPECT_EQ(felt, wanted) << "of " << tries << " kills";
}

}  // namespace
}  // namespace outcore::redis_test
