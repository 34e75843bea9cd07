// go_section FOLDER : a program with the other mark of Go, which ends as Go does, by an instruction
// of its own. What it wrote to its mapping must be in the file, as nothing of it is taken.
#include "go_end.h"

[[gnu::section(".go.buildinfo"), gnu::used]] const char mark[] = "built";

int main(int count, char** arguments) { program::write_and_end(count, arguments); }
