// Fork: what a child finds of its parent's mappings.
//
// The child has neither the parent's threads nor its userfaultfd. Read-only mappings are the
// kernel's in it from the first moment. Writable ones are closed; the first touch, or the first
// system call on their files, asks the parent to store them and to hand them back to the kernel, so
// that both see each other's writes; then they are the kernel's in the child, too. A child that
// goes on to exec costs nothing of this.
#pragma once

namespace outcore::preload {

// What happens at fork() is registered with the C library, before anything of the program is: so it
// comes last of all that fork() calls first, and first of all that it calls afterwards, and no
// handler of the program's finds a lock of ours held. Once a process.
void prepare_fork();

}  // namespace outcore::preload
