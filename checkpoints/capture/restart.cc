// Restart: rolls a pool back to a checkpoint, and reads its objects.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "checkpoints/store/versioned_pools.h"
#include "core/base/error.h"
#include "core/os/cancel_block.h"
#include "core/os/transfer_buffer.h"
#include "core/store/registry.h"
#include "outcore/checkpoint.h"
#include "outcore/store.h"

namespace outcore {
namespace {

constexpr uint64_t kPieceBytes = 2 << 20;

// Whether there is neither a pool nor anything else.
bool is_nothing(const std::string& pool) {
  const auto uri = store::parse_uri(pool);
  if (!uri || store::checkpoints_of(uri.value()) != StoreKind::Checkpoints::kInPool) return false;
  if (uri->path.empty()) return false;
  std::error_code error;
  const auto about = std::filesystem::status(uri->path, error);
  if (about.type() == std::filesystem::file_type::not_found) return true;
  return std::filesystem::is_directory(about) && std::filesystem::is_empty(uri->path, error);
}

Result<CheckpointInfo> choose(const std::string& pool, const std::string& name) {
  auto all = list_checkpoints(pool);
  if (!all) {
    if (!is_nothing(pool)) return all.error();
    return Error{ENOENT, "restart from " + pool + ": there is no pool yet: begin anew"};
  }
  if (all->empty())
    return Error{ENOENT, "restart from " + pool + ": it has no checkpoint yet: begin anew"};
  if (name.empty()) return all->back();
  std::vector<std::string_view> names;
  for (const CheckpointInfo& info : all.value()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  return Error{ENOENT, "restart from " + pool + ": it has no checkpoint '" + name + "'" +
                           store::did_you_mean(name, names)};
}

// Refused while this process uses anything of the pool: pages in memory would be of another time.
Status bring_back(const std::string& pool, const std::string& name) {
  const auto uri = store::parse_uri(pool);
  if (!uri) return uri.status();
  if (store::checkpoints_of(uri.value()) == StoreKind::Checkpoints::kBySnapshots)
    return roll_back(pool, name);
  store::VersionedPoolOptions options;
  options.folder = uri->path;
  const auto opened = store::open_versioned_pool(options);
  if (!opened) return opened.status();
  if (opened->use_count() > 1)
    return Error{EBUSY, "restart from " + pool +
                            ": a region of this process is on it: unmap it first, its pages would "
                            "be of another time"};
  return opened.value()->roll_back(name);
}

}  // namespace

Result<Restart> restart(const std::string& pool, const std::string& name) {
  const os::CancelBlock uncancelled;
  auto chosen = choose(pool, name);
  if (!chosen) return chosen.error();
  if (Status s = bring_back(pool, chosen->name); !s) return s.error();
  auto objects = list_objects(pool, chosen->name);
  if (!objects) return objects.error();
  Restart restart;
  restart.pool_ = pool;
  restart.checkpoint_ = std::move(chosen).value();
  restart.objects_ = std::move(objects).value();
  return restart;
}

std::string Restart::uri_of(const std::string& object) const {
  for (const CheckpointObject& one : objects_)
    if (one.name == object) return one.uri;
  const auto uri = store::parse_uri(pool_);
  if (uri && store::checkpoints_of(uri.value()) != StoreKind::Checkpoints::kInPool)
    return pool_ + "." + object;  // which is not there
  return uri ? "versioned:" + uri->path + "?object=" + store::encode_percents(object) : pool_;
}

Result<uint64_t> Restart::size_of(const std::string& object) const {
  std::vector<std::string_view> names;
  for (const CheckpointObject& one : objects_) {
    if (one.name == object) return one.size_bytes;
    names.push_back(one.name);
  }
  return Error{ENOENT, "the checkpoint '" + checkpoint_.name + "' has no object '" + object + "'" +
                           store::did_you_mean(object, names)};
}

Status Restart::read(const std::string& object, std::span<std::byte> into) const {
  const os::CancelBlock uncancelled;
  const auto size = size_of(object);
  if (!size) return size.status();
  if (size.value() != into.size())
    return Error{EINVAL, "read '" + object + "' of the checkpoint '" + checkpoint_.name +
                             "': it has " + std::to_string(size.value()) + " bytes, not " +
                             std::to_string(into.size())};
  const auto uri = uri_of_checkpoint(pool_, checkpoint_.name, object);
  if (!uri) return uri.status();
  const auto store = open_store(uri.value());
  if (!store) return store.status();
  for (size_t at = 0; at < into.size(); at += kPieceBytes) {
    const auto piece = into.subspan(at, std::min<size_t>(kPieceBytes, into.size() - at));
    if (int error = store.value()->read(at, piece); error != 0)
      return base::system_error(
          error, "read '" + object + "' of the checkpoint '" + checkpoint_.name + "'");
  }
  return {};
}

Status Restart::restore(const std::string& object, Region& region) const {
  const os::CancelBlock uncancelled;
  const auto size = size_of(object);
  if (!size) return size.status();
  if (size.value() > region.size_bytes())
    return Error{EINVAL, "restore '" + object + "' into " + region.uri() + ": it has " +
                             std::to_string(size.value()) + " bytes, the region " +
                             std::to_string(region.size_bytes())};
  const auto uri = uri_of_checkpoint(pool_, checkpoint_.name, object);
  if (!uri) return uri.status();
  const auto store = open_store(uri.value());
  if (!store) return store.status();
  os::TransferBuffer piece;
  if (size.value() != 0)
    if (Status s = piece.allocate(std::min(kPieceBytes, size.value())); !s) return s;
  for (uint64_t at = 0; at < size.value(); at += kPieceBytes) {
    const std::span<std::byte> part = piece.first(std::min(kPieceBytes, size.value() - at));
    if (int error = store.value()->read(at, part); error != 0)
      return base::system_error(
          error, "restore '" + object + "' of the checkpoint '" + checkpoint_.name + "'");
    if (Status s = region.write(at, part); !s) return s;
  }
  return {};
}

}  // namespace outcore
