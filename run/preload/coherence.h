// Coherence: decided, not hoped. Whether a file's mappings can be taken so that nobody sees old
// bytes, and what is done to hear of others. Under the door's lock.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "run/preload/taken_file.h"

namespace outcore::preload {

// Settles how the file is kept coherent, for a mapping at `address` that is about to be taken.
// `is_first`: none of it is taken yet. Empty, or why it cannot be. `is_ours` tells addresses that
// go through Outcore.
std::string keep_coherent(TakenFile& file, const std::byte* address, bool is_writable_mapping,
                          bool is_first, const std::function<bool(std::byte*)>& is_ours);
// The program is about to write to a file that was read-only so far: empty, or why it must go back
// to the kernel.
std::string become_writable(TakenFile& file, const std::byte* address,
                            const std::function<bool(std::byte*)>& is_ours);

}  // namespace outcore::preload
