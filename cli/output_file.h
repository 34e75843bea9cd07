// OutputFile: whether a file can be written later, asked before the work begins. Any thread.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::cli {

enum class HowWritten {
  kInPlace,  // it is opened and written
  kReplaced  // a new file takes its place; what is not a regular file is written into
};

// `attempt`: for the message, as in "--json out.json". Nothing is opened or made. Errors: EISDIR,
// ENOENT, EACCES, EROFS, ENOTDIR.
Status check_output(const std::string& path, HowWritten how, const std::string& attempt);
// Notes that printing on standard output has failed, with errno: reported at the end.
void note_failed_output();
int failed_output();  // the errno of the first time; 0: it has not failed

}  // namespace outcore::cli
