// DamagedBench: benchmarks whose data is kept, and changed before they run again.
#pragma once

#include <string>

#include "cli/tests/command_line.h"

namespace outcore::cli {

class DamagedBench : public CommandTest {
 protected:
  // Changes a byte of each word behind the first page: other taxa, other pixels. The lowest, or
  // another, where a number is so little changed by the lowest that sums round it away.
  void damage(const std::string& name, size_t byte = 0) const {
    std::fstream file(path(name), std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    for (size_t at = 4096 + byte; at < bytes.size(); at += 8) bytes[at] ^= 0x11;
    file.seekp(0);
    file << bytes;
    ASSERT_TRUE(file.good());
  }
  Outcome bench(const std::string& arguments) const {
    return run("bench " + arguments + " --memory mmap,outcore --budget 2M --keep --dir " + dir());
  }
};

}  // namespace outcore::cli
