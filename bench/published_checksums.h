// PublishedChecksums: what the Fourier transform of the NAS Parallel Benchmarks must give.
#pragma once

#include <span>
#include <string_view>

#include "bench/complex_number.h"

namespace outcore::bench {

// The checksum after each pass of a class (NPB, as each implementation has them); empty: no class.
std::span<const Complex> published_checksums(std::string_view name);

}  // namespace outcore::bench
