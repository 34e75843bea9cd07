// Masters of the smallest cluster are killed while a sort rests there that does not fit in its
// memory. OUTCORE_MASTER_KILLS is how often, OUTCORE_MASTER_SEED where chance begins.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

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
    return {OUTCORE_COMMAND,
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
  bool is_there(const std::string& name) {
    const auto stores = list_stores(servers_->uri(""));
    return stores.ok() && std::any_of(stores->begin(), stores->end(),
                                      [&](const StoreInfo& one) { return one.name == name; });
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
  const uint64_t kills = number_of("OUTCORE_MASTER_KILLS", 2);
  std::mt19937_64 random(number_of("OUTCORE_MASTER_SEED", 1));
  double longest = 0, usual = 2;
  uint64_t right = 0, met = 0;
  for (uint64_t k = 0; k < kills; ++k) {
    ASSERT_TRUE(becomes([&] { return is_whole(); })) << "before kill " << k;
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    Sorting run(sort(k));
    EXPECT_TRUE(becomes([&] { return is_there("k" + std::to_string(k)); }));
    const double when = usual * static_cast<double>(random() % 1000) / 1000;
    std::this_thread::sleep_for(std::chrono::duration<double>(when));  // banned-ok: when it dies
    int victim = static_cast<int>(random() % 6);
    while (servers_->info(victim, "role") != "master") victim = (victim + 1) % 6;
    servers_->kill(victim);
    const int status = run.wait(120);
    const auto result = nlohmann::json::parse(
        run.said().substr(std::min(run.said().find('{'), run.said().size())), nullptr, false);
    const bool is_right = status == 0 && result.is_object() && result.value("checked", false);
    EXPECT_TRUE(is_right) << "kill " << k << " of server " << victim << " after " << when
                          << " s: status " << status << ": " << run.said();
    right += is_right;
    const double pause = is_right ? result.value("longest_pause_seconds", 0.0) : 0;
    met += pause > 0.3;
    longest = std::max(longest, pause);
    std::printf("kill %lu: server %d after %.2f s, %.1f s in all, longest pause %.2f s%s\n", k + 1,
                victim, when, seconds(), pause, is_right ? "" : ": WRONG");
    std::fflush(stdout);
    servers_->start(victim);
  }
  std::printf("%lu kills, %lu right answers, %lu while it sorted; longest pause %.2f s\n", kills,
              right, met, longest);
  EXPECT_EQ(right, kills);
}

}  // namespace
}  // namespace outcore::redis_test
