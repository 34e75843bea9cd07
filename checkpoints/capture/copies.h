// Copies: bytes from elsewhere in an object of a target; only what differs is written.
#pragma once

#include <functional>
#include <span>

#include "checkpoints/capture/checkpoint_target.h"
#include "core/paging/change_log.h"
#include "outcore/store.h"

namespace outcore::checkpoints {

inline constexpr uint64_t kPieceBytes = 1 << 20;  // copied at a time

// *written becomes more by what differed. Errors: those of both sides.
Status copy_memory(const Copy& copy, std::span<const std::byte> bytes, uint64_t* written);
// The parts of a store that the log says have changed since it was last asked for this copy; all of
// them if it never was, or if somebody else may have changed the copy meanwhile. It may stop early,
// with false, once may_go_on() says so.
Result<bool> copy_store(const Copy& copy, Store& store, paging::ChangeLog& log, uint64_t* written,
                        const std::function<bool()>& may_go_on = nullptr);

}  // namespace outcore::checkpoints
