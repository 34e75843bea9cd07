// Pools of tests: opened on a disk, made if there is none; and how much of a thing a run is to try.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>

#include "checkpoints/pool/pool.h"

namespace outcore::versioned_test {

inline constexpr uint64_t kChunk = 4096;  // of pools whose size of chunks is not the point

inline std::shared_ptr<versioned::Pool> open_pool(
    const std::shared_ptr<versioned::Disk>& disk, uint32_t chunk_bytes,
    uint64_t delta_bytes_min = versioned::PoolOptions().delta_bytes_min) {
  versioned::PoolOptions options;
  options.may_create = true;
  options.chunk_bytes = chunk_bytes;
  options.delta_bytes_min = delta_bytes_min;
  auto pool = versioned::Pool::open(disk, options);
  EXPECT_TRUE(pool.ok()) << pool.message();
  return pool ? pool.value() : nullptr;
}

// What a variable of the environment says.
inline uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = ::getenv(variable);
  return text == nullptr ? otherwise : ::strtoull(text, nullptr, 10);
}

}  // namespace outcore::versioned_test
