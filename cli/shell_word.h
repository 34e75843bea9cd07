// ShellWord: words as a shell reads them. Any thread.
#pragma once

#include <string>

namespace outcore::cli {

// A word that bash reads as these bytes: as it is where it means nothing else, in '…', or in $'…'
// where it has bytes that no terminal shows.
std::string shell_word(const std::string& word);

}  // namespace outcore::cli
