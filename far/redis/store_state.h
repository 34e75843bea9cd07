// StoreState: what the pieces of Chunks share of one store: its servers, the layout of its chunks,
// who writes it, and what is known of its fences. It decides nothing.
//
// Any thread; the fault path reads it. The pieces beside it (BatchRunner, GroupExchange, …) hold
// references to it and to pieces below them. See docs/internals/decisions/0009-far-memory.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "far/redis/chunk_keys.h"
#include "far/redis/known_fences.h"
#include "far/redis/last_failure.h"
#include "far/redis/script_names.h"
#include "far/redis/servers.h"

namespace outcore::redis {

struct StoreState {
  StoreState(Servers& its_servers, Layout layout, uint32_t its_replicas, uint64_t its_timeout_ns,
             const std::string& its_member)
      : servers(its_servers),
        keys(std::move(layout)),
        replicas(its_replicas),
        timeout_ns(its_timeout_ns),
        member(its_member.empty() ? its_member : "of:" + its_member),
        fences(servers, keys.layout().part_count, timeout_ns),
        failure(servers) {}

  const Layout& layout() const { return keys.layout(); }
  uint32_t part_of(const ChunkRequest& r) const { return keys.part_of(r); }

  Servers& servers;
  const ChunkKeys keys;
  const uint32_t replicas;  // how many must acknowledge a write
  const uint64_t timeout_ns;
  const std::string member;        // a field of the fences; empty: the lease is not shared
  std::atomic<uint64_t> token{0};  // the writer's
  std::atomic<bool> is_new{false};
  KnownFences fences;
  ScriptNames scripts;
  LastFailure failure;
};

}  // namespace outcore::redis
