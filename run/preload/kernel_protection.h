// KernelProtection: what the kernel says of the program's mappings. Any thread; not in a signal
// handler.
#pragma once

#include <cstddef>
#include <span>

namespace outcore::preload {

// PROT_READ and so on, if all bytes of all ranges are mapped so by the kernel, and no file is; else
// -1. REQUIRES: the ranges are sorted.
int kernel_protection(std::span<const std::span<const std::byte>> ranges);

}  // namespace outcore::preload
