// Places: where this build has the command, and where the sources are. One object knows it
// (places.cc.in), so that all others are the same in every checkout, for the compiler cache.
#pragma once

#include <string>

namespace outcore::scene {

const std::string& command_path();
const std::string& source_folder();

}  // namespace outcore::scene
