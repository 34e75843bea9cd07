// Others: who else has a file open or mapped, as far as /proc tells. Not on the fault path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "run/preload/identity.h"

namespace outcore::preload {

// A process other than this one that has the file open or mapped, "cat (123)", or may have, as it
// could not be looked at; empty if there is none.
std::string who_has(const Identity& file);

// Calls f for the program's own descriptors of the file. False: they could not be looked at.
bool for_each_own_descriptor(const Identity& file, const std::function<void(int)>& f);

// What this process itself does with a file.
struct OwnUse {
  bool is_unknown = false;  // it could not be looked at, for want of descriptors or memory
  bool is_open_for_writing = false;
  bool is_in_stdio = false;       // a FILE is on it, whose reads and writes nobody sees
  uint32_t kernel_mappings = 0;   // mappings of it that are not known
  bool has_later_writes = false;  // io_uring or aio is set up, whatever it is used for
};
// The program has a ring of io_uring, or one of aio, that it has a descriptor or a mapping of.
bool has_ring();
// `is_known` tells mappings that do not count, by their first address.
OwnUse own_use_of(const Identity& file, const std::function<bool(std::byte*)>& is_known);

}  // namespace outcore::preload
