// Heir: stores what killed processes wrote to files of a buffer, if no writer of the file is left.
// So written bytes outlive their writer, as they do where the kernel maps the file.
//
// Each member has a thread that finds out which files others write, and keeps a descriptor of each:
// the writer's own, opened again by /proc while the writer lives (which the kernel permits to the
// same user alone). No path is opened. Once all writers of a file have ended, one member becomes a
// writer, stores the pages that they have marked, and notes the file's new version
// (SharedFile::end_writing). Pages that cannot be stored stay in memory, and are tried again. A
// member that leaves the buffer hands this task to others that have the file open, or does it
// first.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include "core/buffer/board.h"
#include "core/os/own_table.h"
#include "core/os/word.h"
#include "outcore/result.h"

namespace outcore::buffer {

class Buffer;
class SharedFile;

class Heir {
 public:
  explicit Heir(Buffer& buffer) : buffer_(buffer) {}  // REQUIRES: it lives longer
  ~Heir();                                            // ends the thread
  Heir(const Heir&) = delete;
  Heir& operator=(const Heir&) = delete;

  Status start();  // EAGAIN: no thread could be started
  // What the thread does, until it is told to end: for a simulation, which has no threads.
  void work();
  void tell_to_end();

 private:
  // A file that others write.
  struct Held {
    uint64_t first_page = 0;   // in the buffer; identifies the file, as no other ever has it
    int fd = -1;               // in the thread's own table
    uint64_t failed_ns = 0;    // when storing failed the last time
    bool is_reported = false;  // the failure was reported
  };

  // All of these run in the thread.
  void run();
  bool fetch(const os::OwnTable& table) const;
  void look(bool is_last);
  void acquire_descriptors();
  void acquire_descriptor(uint32_t index);
  void release_descriptor(uint32_t index);
  bool is_others_to_store(uint32_t index) const;
  void wait_for_others(uint32_t index) const;
  void inherit(uint32_t index, Held& held);
  int store(SharedFile& file, uint32_t index, int fd);
  int store_page(const SharedFile& file, int fd, uint64_t page);
  void report_failure(const Held& held, int error) const;

  Buffer& buffer_;
  const os::OwnTable* table_ = nullptr;   // nullptr: in a simulation
  std::map<uint32_t, Held> held_;         // by the record's number
  std::array<std::byte, kPage> bytes_{};  // of the page that is being stored
  uint32_t heard_ = 0;                    // of Board::heir_requests
  os::Word<uint32_t> is_ending_{0};
  std::thread thread_;
};

}  // namespace outcore::buffer
