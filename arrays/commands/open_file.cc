#include "arrays/commands/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "cli/text.h"
#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

// Before a library opens it: a pipe would keep it waiting, and each library has words of its own
// for a file that is not there.
Status check_file(const ArrayFormat& format, const std::string& path) {
  const std::string attempted = "open " + path;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return failure(
        errno, attempted,
        errno == EACCES ? "ask its owner for the right to read it" : "name a file that is there");
  struct stat about {};
  const bool is_known = ::fstat(fd, &about) == 0;
  const int why = errno;
  ::close(fd);
  if (!is_known) return failure(why, attempted);
  if (format.is_folder) return {};
  if (S_ISDIR(about.st_mode))
    return Error{EIO, attempted + ": it is a folder: name a file, or a folder that ends in .zarr"};
  if (!S_ISREG(about.st_mode))
    return Error{EIO, attempted + ": it is not a regular file: copy it into one first"};
  return {};
}

}  // namespace

Error as_fault_of_file(Error error) {
  if (error.code == EINVAL) error.code = EIO;
  return error;
}

Result<Arrays> open_container(const std::string& uri, ArraysMode mode) {
  auto arrays = Arrays::open(uri, mode);
  if (arrays.ok() || arrays.code() != EINVAL) return arrays;
  // A URI that cannot be is wrong use; where it can be, what it names is wrong.
  const auto parsed = parse_store_uri(uri);
  if (!parsed || !find_store_kind(parsed.value())) return arrays;
  return as_fault_of_file(arrays.error());
}

Result<std::unique_ptr<ArrayReader>> open_file(const ArrayFormat& format, const std::string& path) {
  if (Status s = check_file(format, path); !s) return s.error();
  auto reader = format.open(path);
  if (!reader) return as_fault_of_file(reader.error());
  return reader;
}

}  // namespace outcore::cli
