// Lending: the engine's budget as a room for stores, for as long as there is an engine.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <shared_mutex>

#include "core/store/room.h"

namespace outcore::paging {

class Engine;

class Lending final : public store::Room {
 public:
  explicit Lending(Engine& engine) : engine_(&engine) {}

  int take(uint64_t bytes) override;
  void give(uint64_t bytes) override;
  uint64_t free_bytes() const override;
  uint64_t bytes_max() const override;
  void end();  // stores may live longer than the engine; what they have is then nobody's budget

 private:
  // A forked child has the parent's numbers, and locks that nobody unlocks.
  bool is_here() const { return ::getpid() == process_; }

  const pid_t process_ = ::getpid();
  mutable std::shared_mutex lock_;  // alone: the engine ends
  Engine* engine_;
};

}  // namespace outcore::paging
