// Heir: stores what processes wrote to files of a buffer that were killed, if nobody is left who
// writes them. So what was written outlives its writer, as it does where the kernel maps the file.
//
// Each member has a thread that looks which files others write, and keeps a descriptor of each: the
// writer's own, opened anew by /proc while the writer lives (which the kernel permits to the same
// user alone). No path is opened. Once all writers of a file have ended, one member becomes a
// writer, stores the pages that they have marked, and says how the file is then
// (SharedFile::end_writing). What cannot be stored stays in memory, and is tried again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include "core/buffer/board.h"
#include "outcore/result.h"

namespace outcore::buffer {

class Buffer;
class SharedFile;

class Heir {
 public:
  explicit Heir(Buffer& buffer) : buffer_(buffer) {}  // REQUIRES: it lives longer
  // Stores what nobody else could store, and ends the thread.
  ~Heir();
  Heir(const Heir&) = delete;
  Heir& operator=(const Heir&) = delete;

  Status start();  // EAGAIN: no thread could be started

 private:
  // A file that others write.
  struct Held {
    uint64_t first_page = 0;  // of the record: no other file ever has it
    int fd = -1;              // to read: opened for writing it would be in others' way
    uint64_t failed_ns = 0;   // when it could not be stored
    bool is_told = false;     // that it could not
  };

  void run();
  void look();
  void let_go(uint32_t index);
  bool hold(uint32_t index);
  void inherit(uint32_t index, Held& held);
  int store(SharedFile& file, int fd);
  int store_page(const SharedFile& file, int fd, uint64_t page);

  Buffer& buffer_;
  std::map<uint32_t, Held> held_;         // by the record's number
  std::array<std::byte, kPage> bytes_{};  // of the page that is being stored
  std::atomic<uint32_t> is_ending_{0};
  std::thread thread_;
};

}  // namespace outcore::buffer
