// SharedRuntime: the one runtime that the regions of umap() share.
//
// Whoever uses it first starts it, and the last user ends it. Any thread. No lock is held while it
// starts or ends: who comes meanwhile waits for a change of the state.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "outcore/runtime.h"
#include "umap/settings/settings.h"

namespace outcore::umapped {

class SharedRuntime {
 public:
  explicit SharedRuntime(Settings& settings) : settings_(settings) {}

  // Keeps the runtime from ending.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept : of_(other.of_) { other.of_ = nullptr; }
    Use& operator=(Use&& other) noexcept;
    ~Use() { end(); }

    // REQUIRES: not empty.
    Runtime& runtime() const;
    // An option of Outcore's says which delivery regions have. REQUIRES: not empty.
    bool is_delivery_set() const;

   private:
    friend class SharedRuntime;
    explicit Use(SharedRuntime* of) : of_(of) {}
    void end();
    SharedRuntime* of_ = nullptr;  // nullptr: empty
  };

  // Errors: those of Runtime::start.
  Result<Use> use();
  // The budget with which it was started, or would start now. Takes no lock.
  uint64_t budget_bytes() const;

 private:
  Status start();
  void leave();

  Settings& settings_;
  std::mutex lock_;
  std::condition_variable changed_;
  bool is_changing_ = false;  // being started or ended, by one thread and without the lock
  uint64_t users_ = 0;        // 0: there is no runtime, unless it is changing
  std::optional<Runtime> runtime_;
  bool is_delivery_set_ = false;
  std::atomic<uint64_t> running_budget_bytes_{0};  // 0: no runtime
};

}  // namespace outcore::umapped
