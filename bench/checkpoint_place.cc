#include "bench/checkpoint_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "bench/check.h"
#include "bench/clock.h"
#include "bench/medium.h"
#include "cli/text.h"
#include "cli/transfer_memory.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/store.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kPiece = 1 << 20;
constexpr unsigned kWriters = 4;
const char* const kObject = "pages";

// The bytes, each piece once, by one thread a part. 0, or an errno.
int write_pieces(uint64_t size_bytes,
                 const std::function<int(uint64_t, std::span<const std::byte>)>& write) {
  std::atomic<int> error{0};
  std::vector<std::thread> writers;
  for (unsigned t = 0; t < kWriters; ++t)
    writers.emplace_back([&, t] {
      const cli::TransferMemory piece(kPiece, static_cast<int>(t + 1));
      if (piece.data() == nullptr) {
        error = ENOMEM;
        return;
      }
      for (uint64_t at = t * kPiece; at < size_bytes && error == 0; at += kWriters * kPiece)
        if (const int code = write(at, {piece.data(), kPiece}); code != 0) error = code;
    });
  for (std::thread& writer : writers) writer.join();
  return error;
}

// Past the page cache where the filesystem lets.
Result<double> write_file(const std::string& path, uint64_t size_bytes) {
  int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
  if (fd < 0) fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return cli::failure(errno, "make " + path);
  const uint64_t start_ns = now_ns();
  int error = write_pieces(size_bytes, [fd](uint64_t at, std::span<const std::byte> piece) {
    const ssize_t n = ::pwrite(fd, piece.data(), piece.size(), static_cast<off_t>(at));
    return n == static_cast<ssize_t>(piece.size()) ? 0 : n < 0 ? errno : EIO;
  });
  if (::fsync(fd) != 0) error = errno;
  ::close(fd);
  const double seconds = seconds_since(start_ns);
  ::unlink(path.c_str());
  if (error != 0) return cli::failure(error, "write " + path);
  return seconds;
}

Result<double> write_store(const std::string& uri, uint64_t size_bytes) {
  auto store = open_store(uri, {.is_writable = true, .may_create = true, .size_bytes = size_bytes});
  if (!store) return store.error();
  const uint64_t start_ns = now_ns();
  int error = write_pieces(size_bytes, [&](uint64_t at, std::span<const std::byte> piece) {
    return store.value()->write(at, piece);
  });
  if (error == 0) error = store.value()->sync();
  const double seconds = seconds_since(start_ns);
  store.value().reset();
  const Status removed = remove_remote(uri);
  if (error != 0) return cli::failure(error, "write " + uri);
  if (!removed) return removed.error();
  return seconds;
}

}  // namespace

CheckpointPlace CheckpointPlace::in_folder(std::string folder) {
  BENCH_CHECK(!folder.empty());
  return {std::move(folder), false};
}
CheckpointPlace CheckpointPlace::on_ceph(std::string uri) {
  BENCH_CHECK(is_remote(uri));
  return {std::move(uri), true};
}

std::string CheckpointPlace::image(const std::string& suffix) const {
  std::string uri = at_;
  return uri.insert(std::min(uri.find('?'), uri.size()), suffix);
}

std::vector<std::string> CheckpointPlace::images() const {
  return {pages(), plain(), image(".floor"), image(std::string(".") + kMemory)};
}

std::string CheckpointPlace::pages() const {
  return is_ceph_ ? at_ : pool() + "?object=" + kObject;
}
std::string CheckpointPlace::pool() const { return is_ceph_ ? at_ : "versioned:" + at_ + "/pool"; }
std::string CheckpointPlace::plain() const {
  return is_ceph_ ? image(".plain") : "file:" + at_ + "/plain";
}

Result<std::string> CheckpointPlace::at(const std::string& checkpoint) const {
  if (!is_ceph_) return pages() + "&at=" + checkpoint;
  const auto objects = list_objects(at_, checkpoint);
  if (!objects) return objects.error();
  BENCH_CHECK(objects->size() == 1);
  return uri_of_checkpoint(at_, checkpoint, objects->front().name);
}

Result<double> CheckpointPlace::write_plainly(uint64_t size_bytes) const {
  BENCH_CHECK(size_bytes % kPiece == 0);
  return is_ceph_ ? write_store(image(".floor"), size_bytes)
                  : write_file(at_ + "/floor", size_bytes);
}

Status CheckpointPlace::check_free() const {
  if (!is_ceph_) return {};
  for (const std::string& uri : images()) {
    const auto there = is_there(uri);
    if (!there) return there.error();
    if (there.value())
      return Error{EEXIST, uri + " is there, and may be somebody's: name another with --store"};
  }
  return {};
}

Status CheckpointPlace::remove() const {
  if (!is_ceph_) return {};
  Status first;  // what goes wrong; the others are removed nevertheless
  const auto note = [&](const Status& s) {
    if (first.ok() && !s.ok()) first = s;
  };
  const auto held = list_checkpoints(at_);
  std::vector<std::string> names;
  if (held)
    for (const CheckpointInfo& one : held.value()) names.push_back(one.name);
  else if (held.code() != ENOENT)
    note(held.status());
  if (!names.empty()) note(remove_checkpoints(at_, names));
  for (const std::string& uri : images()) note(remove_remote(uri));
  return first;
}

}  // namespace outcore::bench
