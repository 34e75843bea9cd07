// Coherence: decides whether the mappings of a file can be taken so that nobody sees old bytes, and
// how we learn that others open the file. Under the door's lock.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "run/preload/taken_file.h"

namespace outcore::preload {

// Decides how the file is kept coherent, for a mapping at `address` that is about to be taken.
// `is_first`: no mapping of the file is taken yet. `is_ours` says whether an address goes through
// Outcore. Returns an empty text, or why the mapping cannot be taken.
std::string keep_coherent(TakenFile& file, const std::byte* address, bool is_writable_mapping,
                          bool is_first, const std::function<bool(std::byte*)>& is_ours);
// Why the first that writes the file is not alone with it, as it must be; empty: it is. Not for
// those who join others.
std::string who_else_writes(const TakenFile& file);
// The program is about to write to a file that was read-only so far. Returns an empty text, or why
// the file must go back to the kernel.
std::string become_writable(TakenFile& file, const std::byte* address,
                            const std::function<bool(std::byte*)>& is_ours);

}  // namespace outcore::preload
