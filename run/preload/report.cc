#include "run/preload/report.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "core/base/earlier_output.h"
#include "core/base/plain_text.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "run/preload/real.h"
#include "run/preload/report_next.h"
#include "run/preload/settings.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::format_bytes;
using base::Json;

bool NotTaken::add(const std::string& path, uint64_t size_bytes, const std::string& reason) {
  for (Entry& e : entries_)
    if (e.path == path && e.reason == reason) {
      ++e.count;
      e.size_bytes = std::max(e.size_bytes, size_bytes);
      return false;
    }
  if (entries_.size() == kEntriesMax) return false;
  entries_.push_back({path, reason, size_bytes, 1});
  return true;
}

namespace {

Json json_of(const FileReport& f) {
  const Counters& c = f.counters;
  Json j = {{"path", f.path},
            {"file_bytes", f.file_bytes},
            {"mapped_bytes", f.mapped_bytes},
            {"is_taken", f.is_taken},
            {"coherence", f.remark},
            {"fills", c.fills + c.prefetch_fills + c.zero_fills}};
  Json counters;
#define OUTCORE_PUT(name, unit, help) counters[#name] = c.name;
  OUTCORE_COUNTERS(OUTCORE_PUT)
#undef OUTCORE_PUT
  j["read_bytes"] = c.read_bytes;
  j["written_bytes"] = c.written_bytes;
  j["counters"] = counters;
  return j;
}

Json json_of(const Report& r) {
  Json j = {{"program", r.program},         {"pid", r.pid},
            {"delivery", r.delivery},       {"budget_bytes", r.budget_bytes},
            {"peak_bytes", r.peak_bytes},   {"page_bytes", r.page_bytes},
            {"allocations", r.allocations}, {"alloc_bytes_max", r.alloc_bytes_max},
            {"files", Json::array()},       {"not_taken", Json::array()}};
  const Json learn = {{"profile", r.learn.profile},
                      {"brought_bytes", r.learn.brought_bytes},
                      {"runs", r.learn.runs},
                      {"files", r.learn.files},
                      {"is_kept", r.learn.is_kept}};
  if (!r.learn.profile.empty()) j["learn"] = learn;
  for (const FileReport& f : r.files) j["files"].push_back(json_of(f));
  for (const NotTaken::Entry& e : r.not_taken)
    j["not_taken"].push_back(
        {{"path", e.path}, {"reason", e.reason}, {"size_bytes", e.size_bytes}, {"count", e.count}});
  return j;
}

// One object for the whole run: maxima, the files of all processes, and the report of each process.
Json joined(const std::vector<Json>& all) {
  Json j = {{"files", Json::array()}, {"not_taken", Json::array()},
            {"processes", all},       {"budget_bytes", 0},
            {"peak_bytes", 0},        {"page_bytes", 0}};
  for (const Json& p : all) {
    for (const char* list : {"files", "not_taken"})
      for (const Json& entry : p[list]) j[list].push_back(entry);
    for (const char* largest : {"budget_bytes", "peak_bytes", "page_bytes"})
      j[largest] = std::max(j.value(largest, uint64_t{0}), p.value(largest, uint64_t{0}));
  }
  return j;
}

constexpr size_t kNameColumn = 32;  // characters

std::string shortened(const std::string& path) { return base::end_of_line(path, kNameColumn); }

// A text of the report, which may be a name of the program's choice.
std::string plain_text(const Json& j, const char* name) {
  return base::one_line(j.value(name, std::string()));
}

void print_learn(std::string* out, const Json& learn) {
  const auto number = [&](const char* name) { return learn.value(name, uint64_t{0}); };
  *out += "  learn: ";
  const auto counted = [&](const char* name) {  // "1 file", "2 files"
    const std::string text = std::to_string(number(name)) + " " + name;
    return number(name) == 1 ? text.substr(0, text.size() - 1) : text;
  };
  if (number("runs") != 0)
    *out += format_bytes(number("brought_bytes")) + " in " + counted("runs") + " of " +
            counted("files") + " brought in ahead; ";
  *out += (learn.value("is_kept", false) ? "kept in " : "not kept in ") +
          plain_text(learn, "profile") + "\n";
}

void print_process(std::string* out, const Json& p) {
  char line[512];
  const std::string before = *out;
  const auto number = [](const Json& j, const char* name) { return j.value(name, uint64_t{0}); };
  const std::string of = p.value("delivery", ""), delivery = of.empty() ? "" : ", " + of;
  std::snprintf(line, sizeof line, "outcore: %s (%llu): budget %s, at most %s in use%s\n",
                plain_text(p, "program").c_str(), static_cast<unsigned long long>(number(p, "pid")),
                format_bytes(number(p, "budget_bytes")).c_str(),
                format_bytes(number(p, "peak_bytes")).c_str(), delivery.c_str());
  *out += line;
  if (number(p, "budget_bytes") == 0)
    *out = before + "outcore: " + plain_text(p, "program") + " (" +
           std::to_string(number(p, "pid")) + "): nothing went through Outcore\n";
  if (number(p, "allocations") != 0) {
    std::snprintf(line, sizeof line, "  %llu allocation%s, at most %s at a time\n",
                  static_cast<unsigned long long>(number(p, "allocations")),
                  number(p, "allocations") == 1 ? "" : "s",
                  format_bytes(number(p, "alloc_bytes_max")).c_str());
    *out += line;
  }
  bool has_head = false;
  for (const Json& f : p["files"]) {
    if (!has_head) {
      std::snprintf(line, sizeof line, "  %-32s %10s %10s %10s %8s %10s\n", "file", "size", "fills",
                    "read", "of size", "written");
      *out += line;
      has_head = true;
    }
    const uint64_t size = number(f, "file_bytes"), read = number(f, "read_bytes");
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2f x",
                  size == 0 ? 0.0 : static_cast<double>(read) / static_cast<double>(size));
    std::snprintf(line, sizeof line, "  %s %10s %10llu %10s %8s %10s%s\n",
                  base::padded(shortened(f.value("path", "")), kNameColumn).c_str(),
                  format_bytes(size).c_str(), static_cast<unsigned long long>(number(f, "fills")),
                  format_bytes(read).c_str(), ratio,
                  format_bytes(number(f, "written_bytes")).c_str(),
                  f.value("is_taken", true) ? "" : "  *");
    *out += line;
    if (settings().is_explaining) *out += "    " + plain_text(f, "coherence") + "\n";
  }
  if (p.contains("learn")) print_learn(out, p["learn"]);
  size_t told = 0;
  for (const Json& e : p["not_taken"]) {
    if (++told > 8 && !settings().is_explaining) {
      *out += "  … and more: --explain lists them\n";
      break;
    }
    *out += "  left to the kernel: " + shortened(e.value("path", "")) + " (" +
            format_bytes(number(e, "size_bytes")) + "): " + plain_text(e, "reason") + "\n";
  }
}

std::string calls_taken_over() {
  std::string text = "  calls taken over:";
  size_t column = text.size();
  for (const char* name : {
#define OUTCORE_NAME(result, name, parameters) #name,
           OUTCORE_CALLS(OUTCORE_NAME)
#undef OUTCORE_NAME
       }) {
    if (column > 88) text += "\n   ", column = 3;
    text += std::string(" ") + name;
    column += 1 + std::strlen(name);
  }
  return text + "\n";
}

std::vector<Json> read_reports(const std::string& path) {
  std::vector<Json> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json j = Json::parse_or_null(line);
    if (j.is_object()) all.push_back(std::move(j));
  }
  return all;
}

void append(const std::string& path, const std::string& line) {
  const int fd = real().open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t ignored = real().write(fd, line.data(), line.size());
  static_cast<void>(ignored);
  real().close(fd);
}

}  // namespace

// Of a file that the run was to fill: whoever reads it would take what is there for this run's.
void tell_what_is_missing() {
  using base::EarlierOutput;
  EarlierOutput::for_each(::getpid(), [](std::string_view mark, std::string_view path) {
    const std::string name(path);
    struct stat about {};
    const bool is_there = ::stat(name.c_str(), &about) == 0;
    if ((is_there ? EarlierOutput::mark_of(about) : EarlierOutput::kNoFile) != mark) return;
    if (!is_there && EarlierOutput::is_failure_told.load()) return;
    say("write to " + name +
            ": nothing was written; --explain says what does not go through Outcore" +
            (is_there && about.st_size != 0 ? "; what is in the file is an earlier run's" : ""),
        true);
  });
}

std::string Report::to_json() const { return json_of(*this).dump(); }

namespace {

// Space for the whole of a file, before what it holds is written over. 0 or an errno.
int book_space(int fd, uint64_t size_bytes) {
  rlimit most{};  // whoever makes a file larger than he may is ended by a signal
  if (::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size_bytes) return EFBIG;
  const auto size = static_cast<off_t>(size_bytes);
  if (real().fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) == 0) return 0;
  // Not every file system can do so.
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

// What the file holds stays, or there is no file, where there is no room. 0 or an errno.
int write_table(const std::string& path, const std::string& text) {
  // A pipe that nobody reads would be waited for without an end (ENXIO).
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = real().open(path.c_str(), kFlags);
  const bool is_new = fd < 0 && errno == ENOENT;
  if (is_new) fd = real().open(path.c_str(), kFlags | O_CREAT, 0666);
  if (fd < 0) return errno;
  real().fcntl(fd, F_SETFL, O_WRONLY);
  struct stat about {};
  const bool is_file = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  int error = is_file ? book_space(fd, text.size()) : 0;
  ssize_t written = 0;
  if (error == 0) {
    written = real().write(fd, text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) error = written < 0 ? errno : ENOSPC;
  }
  // Of what is new and old in part nobody would know.
  const off_t size = error == 0 ? static_cast<off_t>(text.size()) : 0;
  if (is_file && (error == 0 || written > 0) && real().ftruncate(fd, size) != 0 && error == 0)
    error = errno;
  if (error != 0 && is_new && is_file && os::is_path_of(about, path, AT_SYMLINK_NOFOLLOW))
    ::unlink(path.c_str());
  real().close(fd);
  return error;
}

void tell_unwritten(const std::string& path, int error) {
  struct stat about {};
  const bool is_there = ::stat(path.c_str(), &about) == 0;
  std::string text = "write " + path + ": ";
  if (error == ENXIO && is_there && S_ISFIFO(about.st_mode))
    text += "nobody reads from this pipe; ";
  else
    text += ::strerrordesc_np(error) + std::string("; ");
  if (error == ENOSPC || error == EDQUOT) text += "free some space there, or ";
  if (error == EFBIG) text += "raise the limit of the size of files (ulimit -f), or ";
  text += "name another place by --json";
  if (is_there && S_ISREG(about.st_mode) && about.st_size != 0)
    text += "; what is in the file is an earlier run's";
  say(text, true);
}

}  // namespace

void publish(const Report& report) {
  const Settings& s = settings();
  const bool is_root = s.root == 0 || s.root == ::getpid();
  if (!is_root) {
    if (!report.is_empty() && !s.report.empty()) append(s.report, report.to_json() + "\n");
    return;
  }
  std::vector<Json> all;
  if (!s.report.empty()) all = read_reports(s.report);
  if (!report.is_empty()) all.push_back(json_of(report));
  const Json whole = joined(all);
  if (!s.json.empty()) {
    const int error = write_table(s.json, whole.dump({.indent = 2}) + "\n");
    if (error != 0) tell_unwritten(s.json, error);
  }
  tell_what_is_missing();
  if (all.empty() && s.is_explaining)
    say("nothing went through Outcore: the program mapped no file, and asked for no memory, that "
        "could");
  if (s.is_quiet || all.empty()) return;
  std::string out;
  for (const Json& p : all) print_process(&out, p);
  if (s.is_explaining) out += calls_taken_over();
  out += next_command(all, s.command);
  say_raw(out.data(), out.size());
}

}  // namespace outcore::preload
