// Fasta: the bases of a FASTA file, which may have several sequences. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::bench {

// Appends 0 (A) … 3 (T), of small letters, too; kNoBase between two sequences, and for what is no
// base or is not known (N). Errors: EINVAL (it is no FASTA, with the line), and what the system
// says.
Status read_fasta(const std::string& path, std::vector<uint8_t>& bases);

}  // namespace outcore::bench
