// GoProgram: whether the program of this process is one of Go, with whose code C was linked: others
// load no library. Reads its file, as what tells it need not be in memory. Once, at the start.
#pragma once

namespace outcore::preload {

bool is_go_program();

}  // namespace outcore::preload
