// Copies: bytes from elsewhere in an object of a pool; only what differs is written.
#pragma once

#include <span>
#include <string>

#include "outcore/store.h"
#include "versioned/pool.h"

namespace outcore::checkpoints {

// The object, made or brought to the size.
Result<std::shared_ptr<versioned::Object>> object_for(versioned::Pool& pool,
                                                      const std::string& name, uint64_t size_bytes);
// *written becomes more by what differed. Errors: those of both sides.
Status copy_memory(versioned::Pool& pool, versioned::Object& object,
                   std::span<const std::byte> bytes, uint64_t* written);
Status copy_store(versioned::Pool& pool, versioned::Object& object, Store& store,
                  uint64_t* written);

}  // namespace outcore::checkpoints
