// Copies: copies bytes of memory or of another store into an object of a checkpoint target; writes
// only what differs.
#pragma once

#include <functional>
#include <span>

#include "checkpoints/capture/checkpoint_target.h"
#include "core/paging/change_log.h"
#include "outcore/store.h"

namespace outcore::checkpoints {

inline constexpr uint64_t kPieceBytes = 1 << 20;  // copied at a time

// Copies memory. Adds the number of bytes that differed to *written. Errors: those of both stores.
Status copy_memory(const Copy& copy, std::span<const std::byte> bytes, uint64_t* written);
// The parts of a store that have changed, by the log, since this copy last asked; all of the store
// if it never asked, or if somebody else may have changed the copy meanwhile. Stops early, with
// false, when may_go_on() returns false.
Result<bool> copy_store(const Copy& copy, Store& store, paging::ChangeLog& log, uint64_t* written,
                        const std::function<bool()>& may_go_on = nullptr);

}  // namespace outcore::checkpoints
