// go_note FOLDER : a program that bears the mark of Go, and ends as Go does, by an instruction of
// its own. What it wrote to its mapping must be in the file, as nothing of it is taken.
#include "go_end.h"

asm(R"(
  .pushsection .note.go.buildid, "a", @note
  .balign 4
  .long 4, 4, 4
  .ascii "Go\0\0"
  .ascii "mark"
  .popsection
)");

int main(int count, char** arguments) { program::write_and_end(count, arguments); }
