// Fork: what a forked child finds in place of its parent's mappings.
//
// The child has neither the parent's threads nor its userfaultfd. Read-only mappings are the
// kernel's in the child from the start. Writable ones are inaccessible (placeholders). The first
// touch, or the first system call on their file, asks the parent to store the file and to hand it
// back to the kernel, so that both processes see each other's writes; from then on the mappings are
// the kernel's in the child, too. A child that goes on to exec costs nothing of this.
#pragma once

namespace outcore::preload {

// Registers what happens at fork() with the C library, before the program can register anything. So
// it is the last that fork() calls before, and the first that it calls after: no handler of the
// program meets one of our locks held. Once for each process.
void prepare_fork();

}  // namespace outcore::preload
