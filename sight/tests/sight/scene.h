// SightScene: programs that page, run until they are told to end, and are looked at meanwhile.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

#include "cli/tests/command_line.h"
#include "outcore/runtime.h"

namespace outcore::cli {

class SightScene : public CommandTest {
 protected:
  static constexpr uint64_t kBytes = 8 << 20;

  void SetUp() override {
    CommandTest::SetUp();
    std::ofstream(path("data.bin")) << std::string(kBytes, 'x');
    // Reads all of the file, again and again with "again"; says so, and waits for a line.
    std::ofstream(path("hold.py")) << R"(import mmap, sys
file = open(sys.argv[1], 'rb')
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
def read_all():
    return sum(data[at] for at in range(0, len(data), 4096))
read_all()
open('ready', 'w').write('1\n')
if sys.argv[2:]:
    while True: read_all()
open('done').read()
)";
  }
  // A shell line that runs while hold.py does, under `outcore run`; $P is its number.
  Outcome beside(const std::string& line, const std::string& budget = "16M",
                 const std::string& words = "data.bin") const {
    return run_lines(
        "bash",
        "export OUTCORE_BUFFER_DIR=$PWD/buffers O=" + command_path() +
            "; rm -f ready done; mkfifo ready done; $O run --min-size 4k --budget " + budget +
            " --buffer none -q -- " + program_ + " hold.py " + words +
            " 2> program.err & P=$!; exec 3<> ready; read -t 60 -u 3 x || cat program.err\n" +
            line + "\nkill -9 $P; wait $P 2> /dev/null; exit 0");
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  static std::string own_number() { return std::to_string(::getpid()); }
  // hold.py is run by a program whose file and name nobody else's processes have.
  void name_program(const std::string& file, const std::string& name) {
    run_lines("python3",
              "import os, shutil, sys\n"
              "shutil.copy(os.path.realpath(sys.executable), '" +
                  file +
                  "')\n"
                  "os.symlink('" +
                  file + "', '" + name + "')");
    program_ = "./" + name;
  }

 private:
  std::string program_ = "python3";
};

}  // namespace outcore::cli
