// Private overlay: the store of a region whose changes are its own. What it writes rests in scratch
// space, reserved at once: ENOSPC comes at map time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore::runtime {

Result<std::shared_ptr<Store>> private_overlay(const std::shared_ptr<Store>& base, uint64_t offset,
                                               uint64_t size_bytes, const std::string& scratch_dir);

}  // namespace outcore::runtime
