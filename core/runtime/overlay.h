// Private overlay: the store of a region with private changes. Its changes are kept in scratch
// space that is reserved at once: ENOSPC is an error of mapping, not of writing.
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
