// Copies: bytes from elsewhere in an object of a pool; only what differs is written.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "outcore/store.h"
#include "paging/change_log.h"
#include "versioned/pool.h"

namespace outcore::checkpoints {

inline constexpr uint64_t kPieceBytes = 1 << 20;  // copied at a time

// The object, made or brought to the size.
Result<std::shared_ptr<versioned::Object>> object_for(versioned::Pool& pool,
                                                      const std::string& name, uint64_t size_bytes);
// *written becomes more by what differed. Errors: those of both sides.
Status copy_memory(versioned::Pool& pool, versioned::Object& object,
                   std::span<const std::byte> bytes, uint64_t* written);
// The parts of a store that the log says have changed since it was last asked for this object; all
// of them if it never was, or if somebody else changed the object meanwhile. It may stop early,
// with false, once may_go_on() says so.
Result<bool> copy_store(versioned::Pool& pool, const std::shared_ptr<versioned::Object>& object,
                        Store& store, paging::ChangeLog& log, uint64_t* written,
                        const std::function<bool()>& may_go_on = nullptr);

}  // namespace outcore::checkpoints
