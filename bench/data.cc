#include "bench/data.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kStepBytes = uint64_t{8} << 20;

std::string default_dir(const Options& options) {
  if (!options.dir.empty()) return options.dir;
  for (const char* name : {"OUTCORE_BENCH_DIR", "TMPDIR"})
    if (const char* value = std::getenv(name); value != nullptr && *value != 0) return value;
  return "/var/tmp";
}

nlohmann::json read_note(const std::string& path) {
  std::ifstream file(path);
  return file ? nlohmann::json::parse(file, nullptr, false) : nlohmann::json();
}

}  // namespace

Data::Data(const Options& options, const std::string& file_name)
    : uri_(options.store.empty() ? default_dir(options) + "/" + file_name : options.store),
      path_(path_of(uri_)),
      is_own_(options.store.empty()),
      may_overwrite_(options.may_overwrite),
      is_kept_(options.is_kept) {}

Data::~Data() {
  std::error_code ignored;
  if (is_claimed_ && is_own_ && !is_kept_) {
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(note_path(), ignored);
  }
  if (lock_ >= 0) close(lock_);
}

Status Data::claim() {
  if (is_claimed_) return {};
  if (is_volatile(uri_))
    return Error{EINVAL, "store " + uri_ +
                             " dies with its process: a benchmark needs one that "
                             "stays, as file:PATH or sparse:DIR"};
  struct stat facts {};
  const bool exists = stat(path_.c_str(), &facts) == 0;
  const bool is_empty = exists && S_ISREG(facts.st_mode) && facts.st_size == 0;
  if (exists && !is_empty && !may_overwrite_ && !read_note(note_path()).is_object())
    return Error{EEXIST, path_ +
                             " exists and was not made by a benchmark: name another, or say "
                             "--overwrite to lose what it holds"};
  if (!exists || is_empty) std::filesystem::remove(note_path());
  if (!exists && !plain_path(uri_).empty()) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return failure(errno, "make " + path_, "choose a directory with --dir");
    close(file);
  }
  const std::string locked = plain_path(uri_).empty() ? note_path() : path_;
  lock_ = open(locked.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) return failure(errno, "open " + locked, "choose a directory with --dir");
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
    return Error{EBUSY, path_ + " is in use by another benchmark: wait for it, or use --dir"};
  is_claimed_ = true;
  return {};
}

bool Data::is_clean(const std::string& tag) const {
  const nlohmann::json note = read_note(note_path());
  return note.is_object() && note.value("content", "") == tag && note.value("clean", false);
}

void Data::mark_clean(const std::string& tag) {
  struct stat facts {};
  if (stat(path_.c_str(), &facts) == 0 && S_ISBLK(facts.st_mode)) return;
  std::ofstream(note_path()) << nlohmann::json{{"content", tag}, {"clean", true}}.dump() << '\n';
}

void Data::mark_changed() {
  struct stat facts {};
  if (stat(path_.c_str(), &facts) == 0 && S_ISBLK(facts.st_mode)) return;
  std::ofstream(note_path()) << nlohmann::json{{"content", ""}, {"clean", false}}.dump() << '\n';
}

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
