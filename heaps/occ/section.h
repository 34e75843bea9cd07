// Section: the place of dlm data in a linked program, which the kernel must not make memory of.
#pragma once

#include <cstdint>
#include <string>

namespace occ {

// Addresses that neither the kernel's random placement nor shadow memory of sanitizers uses: from
// kFirst, or, under those that shadow high addresses (thread, memory), from kFirstLow.
constexpr uint64_t kFirst = 0x1100'0000'0000, kEnd = 0x2a00'0000'0000;
constexpr uint64_t kFirstLow = 0x10'0000'0000, kEndLow = 0x7f'0000'0000;

// Takes the section's segment out of those that are loaded, in a program that was just linked. What
// is no program, or no regular file, is left alone. Returns why not, or nothing.
std::string unload_section(const std::string& program);

}  // namespace occ
