#include "far/store/rbd_catalog.h"

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "far/store/rbd_reclaim.h"

namespace outcore::store {
namespace {

StoreInfo describe(const RbdLibrary& library, rados_ioctx_t pool, const RbdReclaim::Image& one) {
  StoreInfo info;
  info.name = one.name;
  RbdImage image{&library, pool, nullptr, one.id};
  int error = library.rbd_open_read_only(pool, one.name.c_str(), &image.image, nullptr);
  if (error != 0) {
    info.damage = base::system_error(error, "open it").message;
    return info;
  }
  rbd_image_info_t about;
  LifetimeNote note;
  error = library.rbd_stat(image.image, &about, sizeof about);
  if (error == 0) info.size_bytes = about.size;
  if (error == 0) error = read_lifetime(image, &note);
  if (error == 0) error = is_time_over(image, &info.is_expired);
  if (error == -EPERM || error == -EACCES) error = 0;  // who may only read is not told the time
  if (error != 0) info.damage = base::system_error(error, "look at it").message;
  if (note.is_damaged)
    info.damage = "its note outcore.lifetime cannot be read: it is kept for ever";
  info.lifetime_ms = note.lifetime_ms;
  info.owner = RbdLock::name_of_owner(library, image.image);
  library.rbd_close(image.image);
  return info;
}

}  // namespace

Result<std::vector<StoreInfo>> list_images(const RbdStoreOptions& options) {
  const std::string what = "list the images of rbd://" + options.pool;
  const auto connection = options.connect(what);
  if (!connection) return connection.error();
  const RbdLibrary& library = connection.value()->library();
  std::vector<RbdReclaim::Image> images;
  const RbdReclaim reclaim(library, *connection.value());
  if (const int error = reclaim.list(&images); error != 0)
    return base::system_error(error, what, options.remedy_for(error));
  std::sort(images.begin(), images.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<StoreInfo> all;
  for (const RbdReclaim::Image& one : images) {
    all.push_back(describe(library, connection.value()->pool(), one));
    if (!options.name_space.empty()) all.back().name = options.name_space + "/" + all.back().name;
  }
  return all;
}

Status give_back_image(const RbdStoreOptions& options) {
  const std::string what = "give back rbd://" + options.pool + "/" + options.image;
  const auto connection = options.connect(what);
  if (!connection) return connection.status();
  const RbdReclaim reclaim(connection.value()->library(), *connection.value());
  const int error = reclaim.give_back(options.image);
  switch (-error) {
    case 0:
      return {};
    case ENOENT:
      return Error{ENOENT, what +
                               ": there is no such image, or its lifetime is not over: "
                               "`outcore store ls` shows which; `rm` without --expired removes it"};
    case EBUSY:
      return Error{EBUSY, what +
                              ": somebody has it open, or had it and was killed: wait, at most "
                              "30 s, and try again"};
    case ENOTEMPTY:
      return Error{ENOTEMPTY, what +
                                  ": it has snapshots, of others or of checkpoints that are kept: "
                                  "remove them first (outcore checkpoint rm, rbd snap purge)"};
    default:
      return base::system_error(error, what, options.remedy_for(error));
  }
}

}  // namespace outcore::store
