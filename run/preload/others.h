// Others: which other processes have a file open or mapped, as far as /proc tells. Not on the fault
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "run/preload/identity.h"

namespace outcore::preload {

// Another process that has the file open or mapped, such as "cat (123)", or that may have, because
// it could not be looked at. Empty: there is none.
std::string who_has(const Identity& file);
// The same among the processes that are meant; asked only of those that have it.
std::string who_has(const Identity& file, const std::function<bool(int)>& is_meant);
// The process was started under `outcore run`: our library is in its memory, or, as it is a static
// program, or just starting, the environment that it was given says so. False if it cannot be
// looked at.
bool is_under_run(int process);

// Calls f for each descriptor that the program has of the file. False: its descriptors could not be
// read.
bool for_each_own_descriptor(const Identity& file, const std::function<void(int)>& f);

// What this process itself does with a file.
struct OwnUse {
  bool is_unknown = false;  // it could not be read, for lack of descriptors or memory
  bool is_open_for_writing = false;
  bool is_in_stdio = false;       // it has a FILE, whose reads and writes we do not see
  uint32_t kernel_mappings = 0;   // mappings of it that we do not know
  bool has_later_writes = false;  // io_uring or aio is set up, whatever it is used for
};
// The program has a ring of io_uring, or one of aio, that it has a descriptor or a mapping of.
bool has_ring();
// `is_known` says, by the first address, which mappings do not count.
OwnUse own_use_of(const Identity& file, const std::function<bool(std::byte*)>& is_known);

}  // namespace outcore::preload
