// outcore heap check, outcore heap info: looking at persistent heaps from outside.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace outcore::cli {

// Adds the command; its callback sets `status` to what the program exits with.
void add_heap(CLI::App& app, int& status);

}  // namespace outcore::cli
