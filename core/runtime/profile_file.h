// ProfileFile: a profile of learnt starts on a disk: how it is read, and how it is replaced as a
// whole. Several processes may do so at the same time. Any thread; not on the fault path.
#pragma once

#include <string>
#include <vector>

#include "core/prefetch/touch_profile.h"
#include "outcore/result.h"

namespace outcore::runtime {

// A file that is not there, or empty, is a profile of no files. Errors: EINVAL (it is not a
// profile, or damaged), those of the system; one line, with the remedy.
Result<prefetch::TouchProfile> read_profile(const std::string& path);
// Whether a profile could be kept there, as far as that can be seen before. Errors: as above.
Status check_place_of_profile(const std::string& path);
// Adds what was learnt to the profile that is there by now; it is made if there is none. What is in
// the file is either the old profile or the new one. A file that is not a profile stays as it is.
// Errors: as above; EAGAIN (others have kept it locked for seconds).
Status add_to_profile(const std::string& path, std::vector<prefetch::LearntFile> learnt);

}  // namespace outcore::runtime
