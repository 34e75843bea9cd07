// DisturbedBench: benchmarks whose data somebody else writes to while they run.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cli/tests/command_line.h"

namespace outcore::cli {

class DisturbedBench : public CommandTest {
 protected:
  Outcome bench(const std::string& arguments) const {
    return run("bench " + arguments + " --dir " + dir());
  }
  // The lines of JSON of plain memory, mmap and Outcore, on one thread and on three.
  std::vector<Json> lines_of_all_memories(const std::string& arguments) const {
    std::vector<Json> lines;
    for (const char* threads : {"1", "3"}) {
      const Outcome outcome = bench(arguments + " --budget 2M --json --memory dram,mmap,outcore" +
                                    " --threads " + threads);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      for (const auto& line : outcome.lines()) lines.push_back(line);
    }
    return lines;
  }
  // Somebody writes 512 bytes to the file of the data, again and again, at `offset`.
  Outcome disturbed(const std::string& arguments, off_t offset = 65536) const {
    const std::string file = path("data");
    std::atomic<bool> is_over{false};
    std::thread other([&] {
      const std::string garbage(512, '\x55');
      int to = -1;
      while (!is_over && (to = ::open(file.c_str(), O_WRONLY)) < 0) std::this_thread::yield();
      while (!is_over && ::pwrite(to, garbage.data(), garbage.size(), offset) > 0) {
      }
      ::close(to);
    });
    Outcome outcome = bench(arguments + " --memory mmap --unlimited --store " + file);
    is_over = true;
    other.join();
    return outcome;
  }
};

}  // namespace outcore::cli
