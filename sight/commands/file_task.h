// FileTask: warms or evicts a file in one running program, as `outcore warm` and `outcore evict`
// do, while the screen goes on. One thread, and one of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "outcore/result.h"
#include "sight/commands/running_program.h"

namespace outcore::cli {

class FileTask {
 public:
  // The program that is asked. ENOENT: the process answers nobody: only programs that `outcore run`
  // started do.
  static Result<RunningProgram> program_of(pid_t process);

  // `verb`: warm or evict.
  FileTask(const std::string& verb, const RunningProgram& program, const std::string& path,
           uint64_t size_bytes);
  ~FileTask();  // stops it: the piece that is under way is waited for
  FileTask(const FileTask&) = delete;
  FileTask& operator=(const FileTask&) = delete;

  bool is_over() const { return is_over_.load(); }
  // What it has done so far, or why it could not; in one line.
  std::string text() const;

 private:
  void run();
  std::string in_memory() const;  // ": 1.5 GiB in memory"; empty: it does not answer
  void tell(const std::string& text, bool is_last);

  const std::string verb_, path_;
  const RunningProgram program_;
  const uint64_t size_bytes_;
  std::atomic<bool> is_stopped_{false}, is_over_{false};
  mutable std::mutex mutex_;
  std::string text_;
  std::thread thread_;
};

}  // namespace outcore::cli
