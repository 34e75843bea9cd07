// ObjectTable: which objects an open pool has, and how large they are. Changes are part of the next
// commit; see Pool for what the functions promise.
//
// Any thread but the fault path. Each function locks the pool's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/chunk_writer.h"
#include "checkpoints/pool/open_pool.h"

namespace outcore::versioned {

inline constexpr size_t kObjectsMax = 10'000;

class ObjectTable {
 public:
  ObjectTable(OpenPool& pool, ChunkWriter& writer) : pool_(pool), writer_(writer) {}

  std::vector<std::shared_ptr<Object>> list() const;
  std::shared_ptr<Object> find(const std::string& name) const;
  Result<std::shared_ptr<Object>> create(const std::string& name, uint64_t size_bytes);
  Status remove(const std::string& name);
  int resize(Object& object, uint64_t size_bytes);

 private:
  OpenPool& pool_;
  ChunkWriter& writer_;
};

}  // namespace outcore::versioned
