#include "bench/data.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/check.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"

namespace outcore::bench {

std::string data_dir(const Options& options) {
  if (!options.dir.empty()) return options.dir;
  for (const char* name : {"OUTCORE_BENCH_DIR", "TMPDIR"})
    if (const char* value = std::getenv(name); value != nullptr && *value != 0) return value;
  return "/var/tmp";
}

namespace {

constexpr uint64_t kStepBytes = uint64_t{8} << 20;
constexpr size_t kNoteBytesMax = 4096;

std::string own_path(const Options& options, const std::string& file_name) {
  const std::string path = data_dir(options) + "/" + file_name;
  // A colon in a directory's name makes no scheme of it.
  return plain_path(path) == path ? path : "./" + path;
}

struct Note {
  bool is_there = false, is_ours = false;
  std::string content;
  bool is_clean = false;
};

Note read_note(const std::string& path) {
  Note note;
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return note;
  note.is_there = true;
  if (!S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) > kNoteBytesMax) return note;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const cli::Json said = cli::Json::parse_or_null(text);
  cli::JsonFields fields(said);
  note.content = fields.get<std::string>("content");
  note.is_clean = fields.get<bool>("clean");
  note.is_ours = fields.ok() && said.size() == 2;
  return note;
}

// The paths of what this process made, and keeps for its next benchmarks.
std::set<std::string>& kept_paths() {
  static std::set<std::string> paths;
  return paths;
}

}  // namespace

void Data::remove_kept() {
  for (const std::string& path : std::exchange(kept_paths(), {})) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    std::error_code ignored;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && std::filesystem::remove(path, ignored))
      unlink((path + kNoteEnd).c_str());
    close(file);
  }
}

Data::Data(const Options& options, const std::string& file_name)
    : uri_(options.store.empty() ? own_path(options, file_name) : options.store),
      path_(path_of(uri_)),
      elsewhere_(options.store.empty() ? "choose a directory with --dir" : options.store_remedy),
      is_own_(options.store.empty()),
      may_overwrite_(options.may_overwrite),
      is_kept_(options.is_kept) {
  // The note lies beside a folder, never in it.
  while (!is_plain() && !is_remote() && path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
}

Data::~Data() {
  std::error_code ignored;
  if (is_remote()) {
    if (!is_claimed_ || is_kept_) return;
    if (const Status removed = remove_remote(uri_); !removed)
      std::fprintf(stderr, "outcore: %s (a benchmark's data stays there: remove it)\n",
                   removed.message().c_str());
  } else if (is_claimed_ && is_own_ && !is_kept_) {
    std::filesystem::remove(path_, ignored);
    remove_note();
  } else if (is_claimed_ && !is_made_ && trace() == claimed_) {
    if (is_new_) std::filesystem::remove_all(path_, ignored);
    if (!had_note_) remove_note();
  } else if (is_new_ && is_own_) {
    kept_paths().insert(path_);
  }
  if (lock_ >= 0) close(lock_);
}

Status Data::claim() {
  if (is_claimed_) return {};
  if (!is_own_)
    if (Status s = check_store(uri_); !s) return s;
  if (is_remote()) return claim_remote();
  struct stat facts {};
  const bool exists = stat(path_.c_str(), &facts) == 0;
  if (is_plain() && S_ISDIR(facts.st_mode))
    return Error{EISDIR, path_ + " is a folder: move it, or " + elsewhere_};
  std::error_code ignored;
  const bool is_sized = S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode);
  const bool is_empty = !exists || (is_sized && std::filesystem::is_empty(path_, ignored));
  if (Status s = check_owner(is_empty); !s) return s;
  if (Status s = is_plain() ? open_file() : open_folder(exists); !s) return s;
  BENCH_CHECK(lock_ >= 0);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
    return Error{EBUSY, path_ + " is in use by another benchmark: wait for it, or " + elsewhere_};
  is_claimed_ = true;
  claimed_ = trace();
  // A note that outlived its file says nothing of the new one.
  if (is_empty && had_note_) {
    had_note_ = false;
    write_note("", false);
  }
  return {};
}

Status Data::claim_remote() {
  const Result<bool> there = is_there(uri_);
  if (!there) return there.error();
  if (there.value() && !may_overwrite_)
    return Error{EEXIST, without_password(uri_) + " is there, with whatever somebody stored: " +
                             elsewhere_ + ", or say --overwrite to lose it"};
  if (there.value())
    if (Status s = clear(); !s) return s;
  is_claimed_ = true;
  return {};
}

Status Data::check_owner(bool is_empty) {
  const Note note = read_note(note_path());
  if (note.is_there && !note.is_ours)
    return Error{EEXIST,
                 note_path() +
                     " is not a note of a benchmark, and would be overwritten: move it, or " +
                     elsewhere_};
  had_note_ = note.is_ours;
  if (is_empty || had_note_ || may_overwrite_) return {};
  return Error{EEXIST, path_ + " exists and was not made by a benchmark: " +
                           (is_own_ ? "move it, or " + elsewhere_
                                    : elsewhere_ + ", or say --overwrite to lose what it holds")};
}

Status Data::open_file() {
  const int flags = O_RDONLY | O_CLOEXEC;
  lock_ = open(path_.c_str(), flags);
  if (lock_ < 0 && errno == ENOENT) {
    lock_ = open(path_.c_str(), flags | O_CREAT, 0644);
    is_new_ = lock_ >= 0;
  }
  if (lock_ >= 0) return {};
  const int code = errno;
  const bool has_folder = code != ENOENT || is_own_;
  return cli::failure(code, "open " + path_,
                      (has_folder ? "" : "make its folder first, or ") + elsewhere_);
}

// The store is opened before there is a note, which is also what is locked.
Status Data::open_folder(bool exists) {
  OpenOptions options;
  options.is_writable = options.may_create = true;
  const Result<std::shared_ptr<Store>> store = open_store(uri_, options);
  if (!store) return Error{store.code(), store.message() + " (or " + elsewhere_ + ")"};
  lock_ = open(note_path().c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    const int code = errno;
    std::error_code ignored;
    if (!exists) std::filesystem::remove_all(path_, ignored);
    return cli::failure(code, "open " + note_path(), elsewhere_);
  }
  is_new_ = !exists;
  return {};
}

Data::Trace Data::trace() const {
  Trace found;
  struct stat facts {};
  if (stat(path_.c_str(), &facts) != 0) return found;
  if (!S_ISDIR(facts.st_mode))
    return {static_cast<uint64_t>(facts.st_size), facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
  std::error_code code;
  std::filesystem::directory_iterator at(path_, code);
  for (; !code && at != std::filesystem::directory_iterator(); at.increment(code)) ++found.size;
  return found;
}

void Data::remove_new() {
  if (!is_claimed_ || !is_new_) return;  // what is on servers goes at the end anyway
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  remove_note();
}

bool Data::is_clean(const std::string& tag) const {
  if (is_remote()) return false;
  const Note note = read_note(note_path());
  return note.is_ours && note.content == tag && note.is_clean;
}

void Data::mark_clean(const std::string& tag) {
  BENCH_CHECK(is_claimed_);
  is_made_ = true;
  write_note(tag, true);
}

void Data::mark_changed() {
  BENCH_CHECK(is_claimed_);
  // What cannot be opened for writing does not change.
  if (access(path_.c_str(), W_OK) == 0) write_note("", false);
}

void Data::write_note(const std::string& tag, bool is_so) {
  if (is_remote()) return;
  struct stat facts {};
  if (stat(path_.c_str(), &facts) == 0 && S_ISBLK(facts.st_mode)) return;
  const std::string text = cli::Json{{"content", tag}, {"clean", is_so}}.dump() + '\n';
  // Written over and then cut, not made anew: a full device has room for it.
  const int file = open(note_path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  const bool is_written = file >= 0 &&
                          pwrite(file, text.data(), text.size(), 0) == std::ssize(text) &&
                          ftruncate(file, static_cast<off_t>(text.size())) == 0;
  if (file >= 0) close(file);
  if (!is_written) remove_note();  // no note is better than a wrong one
}

void Data::remove_note() const { unlink(note_path().c_str()); }

Status write_words(Medium& medium, uint64_t size_bytes, uint64_t seed) {
  std::vector<uint64_t> words(kStepBytes / sizeof(uint64_t));
  for (uint64_t at = 0; at < size_bytes; at += kStepBytes) {
    const uint64_t step = std::min(kStepBytes, size_bytes - at);
    const uint64_t first = at / sizeof(uint64_t), base = mix(seed) + first;
    for (uint64_t i = 0; i < step / sizeof(uint64_t); ++i) words[i] = mix(base + i);
    if (Status s = medium.write(at, std::as_bytes(std::span(words)).first(step)); !s) return s;
  }
  return medium.sync();
}

Status read_words(Medium& medium, uint64_t size_bytes,
                  const std::function<void(uint64_t, std::span<const uint64_t>)>& see) {
  std::vector<uint64_t> words(kStepBytes / sizeof(uint64_t));
  for (uint64_t at = 0; at < size_bytes; at += kStepBytes) {
    const uint64_t step = std::min(kStepBytes, size_bytes - at);
    const auto bytes = std::as_writable_bytes(std::span(words)).first(step);
    if (Status s = medium.read(at, bytes); !s) return s;
    see(at / sizeof(uint64_t), std::span(words).first(step / sizeof(uint64_t)));
  }
  return {};
}

}  // namespace outcore::bench
