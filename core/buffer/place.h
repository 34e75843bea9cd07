// Place: where buffers are found: a folder that is this user's alone, with a small file for each
// buffer. Not the fault path.
#pragma once

#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::buffer {

// Names are letters, digits, '.', '_' and '-', 100 at most, and do not begin with a dot. EINVAL.
Status check_name(const std::string& name);

// $OUTCORE_BUFFER_DIR, else $XDG_RUNTIME_DIR/outcore, else outcore-UID in the folder for temporary
// files; made if it is missing. Errors: those of the system; EPERM (another user could get in).
Result<std::string> folder();
// Whether folder() would have one; nothing is made. Errors: the same.
Status check_folder();
// Where the file of a buffer of this name is, or would be.
std::string path_of(const std::string& name);

// The file of a buffer there: its name and a suffix that nothing else has.
std::string file_of(const std::string& folder, const std::string& name);
// The names of the buffers whose files are in it, in order; whether anybody is a member is not
// asked.
Result<std::vector<std::string>> names_in(const std::string& folder);

// Removes the file of a buffer that nobody is in, which members that were killed, or ended at one
// moment, have left. Nobody joins meanwhile; who waits to do so finds a file without a name, and
// makes another. Whoever makes a buffer removes the files of others in this way.
void remove_if_left(const std::string& path);
// The same for who has it open as `fd`, with the lock of kMaking.
void remove_if_empty(int fd, const std::string& path);

}  // namespace outcore::buffer
