// Section: where dlm data lies in a linked program. The kernel must not map it when the program
// starts.
#pragma once

#include <cstdint>
#include <string>

namespace occ {

// Addresses that neither the kernel's random placement nor the shadow memory of sanitizers uses:
// from kFirst on; with sanitizers that use high addresses (thread, memory) from kFirstLow on.
constexpr uint64_t kFirst = 0x1100'0000'0000, kEnd = 0x2a00'0000'0000;
constexpr uint64_t kFirstLow = 0x10'0000'0000, kEndLow = 0x7f'0000'0000;

// Removes the section's segment from those that the kernel loads, in a program that was just
// linked. A file that is not a program or not a regular file is left alone. Returns an error
// message, or nothing.
std::string unload_section(const std::string& program);

}  // namespace occ
