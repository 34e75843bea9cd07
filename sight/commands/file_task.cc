#include "sight/commands/file_task.h"

#include <algorithm>
#include <cerrno>

#include "cli/text.h"

namespace outcore::cli {
namespace {

// Small, so that it can be stopped soon, and progress is seen.
constexpr uint64_t kPieceBytes = uint64_t{16} << 20;
constexpr int kPieceMsMax = 10'000;

}  // namespace

Result<RunningProgram> FileTask::program_of(pid_t process) {
  for (const RunningProgram& program : running_programs())
    if (program.pid == process) return program;
  return Error{ENOENT,
               "process " + std::to_string(process) +
                   " does not answer: only programs started by `outcore run` can be asked to "
                   "warm and evict"};
}

FileTask::FileTask(const std::string& verb, const RunningProgram& program, const std::string& path,
                   uint64_t size_bytes)
    : verb_(verb), path_(path), program_(program), size_bytes_(size_bytes) {
  thread_ = std::thread([this] { run(); });
}

FileTask::~FileTask() {
  is_stopped_ = true;
  thread_.join();
}

std::string FileTask::text() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return text_;
}

void FileTask::tell(const std::string& text, bool is_last) {
  const std::lock_guard<std::mutex> guard(mutex_);
  text_ = text;
  is_over_ = is_last;
}

void FileTask::run() {
  const std::string what = verb_ == "warm" ? "warming " : "evicting ";
  tell(what + path_, false);
  uint64_t at = 0;
  bool is_last = false;
  while (!is_last && !is_stopped_) {
    is_last = at + kPieceBytes >= size_bytes_;
    Question piece{.verb = verb_, .offset = at, .path = path_, .wait_ms_max = kPieceMsMax};
    piece.size_bytes = is_last ? 0 : kPieceBytes;  // a mapping may be longer than the file
    const Reply reply = ask({program_}, piece).front();
    if (reply.kind != Reply::Kind::kTaken)
      return tell(
          "could not " + verb_ + " " + path_ + ": " +
              (reply.kind == Reply::Kind::kNone ? "the program has not taken it" : reply.why),
          true);
    at = std::min(size_bytes_, at + kPieceBytes);
    if (!is_last)
      tell(what + path_ + ": " + format_bytes(at) + " of " + format_bytes(size_bytes_) +
               " gone through",
           false);
  }
  if (!is_stopped_) tell((verb_ == "warm" ? "warmed " : "evicted ") + path_ + in_memory(), true);
}

// Of the whole file: what a piece's answer has is the piece's alone.
std::string FileTask::in_memory() const {
  const Reply reply = ask({program_}, {.verb = "residency", .path = path_}).front();
  if (reply.kind != Reply::Kind::kTaken) return "";
  return ": " +
         format_bytes(reply.answer.value("resident", uint64_t{0}) *
                      reply.answer.value("page_bytes", uint64_t{0})) +
         " in memory";
}

}  // namespace outcore::cli
