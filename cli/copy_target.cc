#include "cli/copy_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/assert.h"
#include "cli/output_file.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using Place = StoreKind::Place;
using Checkpoints = StoreKind::Checkpoints;

// The URI with another path.
std::string with_path(const std::string& text, const StoreUri& uri, const std::string& path) {
  if (uri.path == text) return path;  // it has no scheme
  const size_t question = text.rfind('?');
  return uri.scheme + ":" + path + (question == std::string::npos ? "" : text.substr(question));
}

// The file that a link leads to.
std::string target_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error || real.empty() ? path : real.string();
}

// Whoever may write a file there keeps who else may.
void keep_rights(const std::string& from, const std::string& to) {
  struct stat about {};
  if (::stat(from.c_str(), &about) != 0) return;
  if (::chown(to.c_str(), about.st_uid, about.st_gid) != 0) {
    about.st_mode &= 0777;
    // Another group may do what everybody may.
    const bool is_same_group = ::chown(to.c_str(), static_cast<uid_t>(-1), about.st_gid) == 0;
    if (!is_same_group) about.st_mode &= 0707 | (about.st_mode & 07) << 3;
  }
  static_cast<void>(::chmod(to.c_str(), about.st_mode & 07777));
}

}  // namespace

bool is_server_gone(int code) {
  for (const int one : {ETIMEDOUT, ECONNREFUSED, ECONNRESET, ENOTCONN, EPIPE, EHOSTUNREACH})
    if (code == one) return true;
  return false;
}

CopyTarget::CopyTarget(std::string uri, bool is_there) : uri_(std::move(uri)), is_there_(is_there) {
  CLI_CHECK(parse_store_uri(uri_).ok());
}

Status CopyTarget::open_beside(const std::string& path, const StoreKind& kind) {
  path_ = target_of(path);
  struct stat about {};
  const bool is_named = ::stat(path_.c_str(), &about) == 0;
  if (is_named && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return {};  // a device
  if (kind.place == Place::kFile || !is_named)
    if (Status s = check_output(path_, HowWritten::kReplaced, "write " + path_); !s) return s;
  CLI_CHECK(!beside_.has_value());
  beside_.emplace(path_);
  return {};
}

// What takes the place of another file is for nobody else's eyes while it has not that one's
// rights.
Status CopyTarget::make_file() {
  CLI_CHECK(beside_.has_value());
  const int fd = ::open(beside_->temporary().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        is_there_ ? 0600 : 0666);
  if (fd < 0) return failure(errno, "write " + path_);
  ::close(fd);
  return {};
}

Result<std::shared_ptr<Store>> CopyTarget::open(uint64_t size_bytes) {
  const auto uri = parse_store_uri(uri_);
  const auto kind = uri ? find_store_kind(uri.value()) : Result<const StoreKind*>(uri.error());
  if (!kind) return kind.error();
  // A store of several files that is there may have others beside them: it is written in place.
  const bool is_folder = kind.value()->place == Place::kFolder && !is_there_ &&
                         !kind.value()->dies_with_process &&
                         kind.value()->checkpoints == Checkpoints::kNone;
  if ((kind.value()->place == Place::kFile || is_folder) && !uri->path.empty())
    if (Status s = open_beside(uri->path, *kind.value()); !s) return s.error();
  if (beside_ && kind.value()->place == Place::kFile)
    if (Status s = make_file(); !s) return s.error();
  OpenOptions options;
  options.is_writable = options.may_create = options.is_rewritten = true;
  options.size_bytes = size_bytes;
  auto to =
      open_store(beside_ ? with_path(uri_, uri.value(), beside_->temporary()) : uri_, options);
  if (!to) return abandon(to.error());
  store_ = std::move(to).value();
  if (store_->size_bytes() == size_bytes) return store_;
  if (const int result = store_->resize(size_bytes); result != 0)
    return abandon(
        {-result, "resize " + store_->uri() + ": " + std::string(::strerrordesc_np(-result))});
  return store_;
}

Status CopyTarget::finish(bool may_replace) {
  store_.reset();
  if (!beside_) return {};
  if (is_there_) keep_rights(path_, beside_->temporary());
  return beside_->finish(may_replace);
}

Error CopyTarget::abandon(Error error) {
  if (beside_) {
    const std::string temporary = beside_->temporary();
    if (const size_t at = error.message.find(temporary); at != std::string::npos)
      error.message.replace(at, temporary.size(), path_);
    store_.reset();
    beside_.reset();
    return error;
  }
  const auto uri = parse_store_uri(uri_);
  const auto kind = uri ? find_store_kind(uri.value()) : Result<const StoreKind*>(uri.error());
  if (!kind || store_ == nullptr) return error;
  if (kind.value()->checkpoints == Checkpoints::kInPool) {
    // A pool that is closed commits what was written. This one ends with the process, as one does
    // that was killed: the last commit stays.
    static_cast<void>(new std::shared_ptr<Store>(std::move(store_)));
    return error;
  }
  const std::string name = one_line(store_->uri());
  store_.reset();
  // It is not removed: somebody else may have taken it, or have made it before us.
  if (error.code == ESTALE && kind.value()->remove)
    error.message += "; " + name + " may be another process's now: look at it before you remove it";
  else if (is_there_ && !kind.value()->dies_with_process)
    error.message += "; " + name + " is neither what it was nor what it should be: write it again";
  else if (kind.value()->remove)
    error.message +=
        "; a part of it is kept, if nobody wrote it since: `outcore store rm` removes it";
  return error;
}

}  // namespace outcore::cli
