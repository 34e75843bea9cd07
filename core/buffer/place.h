// Place: the folder in which a user's buffers are found, accessible to that user alone, with a
// small file for each buffer. Not the fault path.
#pragma once

#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::buffer {

// Names are letters, digits, '.', '_' and '-', 100 at most, and begin with neither '.' nor '-', as
// options do; "none" says that nothing is shared. EINVAL.
Status check_name(const std::string& name);

// $OUTCORE_BUFFER_DIR, else $XDG_RUNTIME_DIR/outcore, else outcore-UID in the folder for temporary
// files; made if it is missing. Errors: those of the system; EPERM (another user could get in).
Result<std::string> folder();
// Whether folder() would succeed; nothing is made. Errors: the same.
Status check_folder();
// Where the file of a buffer of this name is, or would be.
std::string path_of(const std::string& name);

// The path of a buffer's file in that folder: the name and a suffix that only such files have.
std::string file_of(const std::string& folder, const std::string& name);
// The names of the buffers whose files are in the folder, sorted; they may have no members.
Result<std::vector<std::string>> names_in(const std::string& folder);

// Removes the file of a buffer without members: those that are killed, or end at one moment, leave
// it. It takes the lock of kMaking, so nobody joins meanwhile; a process that waited to join finds
// that the file has no name any more, and makes another. Called for all buffers when one is made.
void remove_if_left(const std::string& path);
// The same, of the file that is open as `fd`. REQUIRES: the lock of kMaking.
void remove_if_empty(int fd, const std::string& path);

}  // namespace outcore::buffer
