// Interrupts: SIGINT, SIGTERM and SIGHUP (the terminal is gone), so that whoever stops a command
// finds no half of what it makes. Any thread.
#pragma once

namespace outcore::cli {

// From now on the first of them is only noted; whoever interrupts again a second later ends the
// program at once.
void catch_interrupts();
bool is_interrupted();

}  // namespace outcore::cli
