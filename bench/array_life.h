// ArrayLife: processes that write a container of arrays, session after session, until they are
// killed; and how far they have come, in memory that outlives them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/array_script.h"
#include "outcore/result.h"

namespace outcore::bench {

inline constexpr unsigned kLifeProcessesMax = 4, kLifeSessionsMax = 4096;

enum class Closing : uint8_t { kNot, kBegun, kDone, kFailed };

struct SessionNews {
  std::atomic<unsigned> begun{0}, done{0};  // of its steps
  std::atomic<Closing> closing[kLifeProcessesMax] = {};
};

// What went wrong first.
struct Trouble {
  std::atomic<bool> is_taken{false};
  std::atomic<int> code{0};  // after the message
  char message[512] = {};
  void tell(const Error& error);
  Status status() const { return code == 0 ? Status() : Status(Error{code, message}); }
};

// Shared by them and whoever kills them.
struct LifeNews {
  std::atomic<unsigned> come{0};
  std::atomic<bool> is_over{false};  // one of them is dead: nobody waits for it
  SessionNews sessions[kLifeSessionsMax];
  Trouble trouble;          // which no death excuses
  Trouble closing_trouble;  // which a death does
};

struct LifeOptions {
  std::string path;
  ArrayScripts scripts;
  uint64_t first_number = 0;  // of its first script
  unsigned processes = 1;
  Contents contents;  // that are there
};

// Processes of this life; they end with their parent.
class ArrayLife {
 public:
  static Result<ArrayLife> start(const LifeOptions& options);
  ~ArrayLife();  // all are dead then
  ArrayLife(ArrayLife&& other) noexcept;
  ArrayLife& operator=(ArrayLife&&) = delete;

  const LifeNews& news() const { return *news_; }
  void kill(unsigned rank);
  // Whoever is alive may end by itself for so long; then it is killed.
  void end(uint64_t grace_ns);

 private:
  ArrayLife() = default;
  LifeNews* news_ = nullptr;
  std::vector<pid_t> pids_;  // 0: it is dead
};

}  // namespace outcore::bench
