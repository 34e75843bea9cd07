#include "far/store/redis_opening.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace outcore::store {
namespace {

constexpr uint32_t kPartCount = 256;
constexpr uint64_t kHolesKnownMax = uint64_t{1} << 40;

}  // namespace

Status OpenedRedis::begin_rewrite() const {
  const Status s = servers->catalog->begin_rewrite(options.name, record.token);
  return s ? s : refuse_redis(options, s.code(), s.message());
}

Status RedisOpening::claim(const OpenOptions& how, int64_t capacity_bytes, bool is_shared) {
  const RedisOptions& options = opened_.options;
  redis::Claim claim;
  claim.name = options.name;
  claim.is_writer = how.is_writable;
  claim.may_create = how.may_create;
  claim.is_rewritten = how.is_rewritten;
  claim.size_bytes = how.size_bytes;
  is_shared ? claim.set_member() : claim.set_owner();
  const bool is_packed = options.packing && options.packing->kind != packing::Packing::Kind::kNone;
  claim.chunk_bytes = options.chunk_bytes != 0 ? options.chunk_bytes
                      : is_packed              ? kPackedChunkBytes
                                               : kRedisChunkBytes;
  if (is_packed && is_shared)
    return refuse_redis(options, ENOTSUP,
                        "one process writes compressed chunks, not several: leave out compress=");
  if (is_packed) {
    // Before anything is created, because the compression library may be missing.
    if (auto packer = packing::Packer::make(*options.packing, claim.chunk_bytes); !packer)
      return refuse_redis(options, packer.code(), packer.message());
    claim.packing = options.packing->text();
  }
  claim.part_count = kPartCount;
  claim.replicas = options.replicas;
  claim.lifetime_ms = options.lifetime_ms;
  claim.capacity_bytes = capacity_bytes;
  std::unique_ptr<RedisLease> lease;
  if (how.is_writable) lease = std::make_unique<RedisLease>(options, *opened_.servers, is_shared);
  auto record = opened_.servers->catalog->open(claim);
  if (record.code() == ENOSPC) {
    if (Status s = opened_.servers->reclaim_expired(options); !s) return s;
    record = opened_.servers->catalog->open(claim);
  }
  if (!record) return refuse_redis(options, record.code(), record.message());
  opened_.record = std::move(record).value();
  opened_.lease = std::move(lease);
  if (opened_.lease != nullptr) opened_.lease->take(opened_.record.token);
  if (is_shared)
    opened_.lease->join(std::make_unique<redis::SharedLease>(
        *opened_.servers->servers, options.replicas, options.timeout_ms * 1'000'000, claim,
        opened_.record));
  if (options.chunk_bytes != 0 && options.chunk_bytes != opened_.record.chunk_bytes)
    return refuse_redis(options, EINVAL,
                        "it was made with chunk=" + std::to_string(opened_.record.chunk_bytes) +
                            ": leave out the parameter, or remove the store first");
  return choose_packer();
}

// As the store was created; only the level of compression may differ.
Status RedisOpening::choose_packer() {
  const RedisOptions& options = opened_.options;
  const std::string made = opened_.record.packing.empty() ? "none" : opened_.record.packing;
  const auto noted = packing::Packing::parse(made);
  if (!noted)
    return refuse_redis(options, ENOTSUP,
                        "it was made with compress=" + made + ", which this version does not know");
  packing::Packing packing = noted.value();
  if (options.packing && options.packing->kind != packing.kind)
    return refuse_redis(options, EINVAL,
                        "it was made with compress=" + made +
                            ": leave out the parameter, or remove the store first");
  if (options.packing) packing = *options.packing;
  if (packing.kind == packing::Packing::Kind::kNone) return {};
  auto packer = packing::Packer::make(packing, opened_.record.chunk_bytes);
  if (!packer) return refuse_redis(options, packer.code(), packer.message());
  opened_.packer = std::move(packer.value());
  return {};
}

// A writer takes the fences; a reader checks them.
Status RedisOpening::take_over(bool is_rewritten) {
  const RedisOptions& options = opened_.options;
  const redis::Layout layout{opened_.record.id, opened_.record.part_count,
                             opened_.record.chunk_bytes, opened_.packer != nullptr};
  const uint64_t timeout_ns = options.timeout_ms * 1'000'000;
  redis::SharedLease* const shared = opened_.lease == nullptr ? nullptr : opened_.lease->shared();
  opened_.chunks = std::make_unique<redis::Chunks>(*opened_.servers->servers, layout,
                                                   options.replicas, timeout_ns, opened_.packer,
                                                   shared != nullptr ? shared->member() : "");
  if (opened_.packer != nullptr && opened_.lease != nullptr)
    opened_.parts = std::make_unique<redis::PartWriter>(
        *opened_.chunks, opened_.packer, timeout_ns,
        [written = opened_.written.get(), chunk_bytes = opened_.record.chunk_bytes](
            uint64_t chunk, bool is_written) {
          const uint64_t offset = chunk * chunk_bytes;
          const bool is_untouched = written->is_untouched(offset, chunk_bytes);
          if (is_written) written->mark(offset, chunk_bytes);
          return is_untouched;
        });
  if (!opened_.chunks->has_spaces() || (opened_.parts != nullptr && !opened_.parts->has_spaces()))
    return refuse_redis(options, ENOMEM, "no memory to pack chunks in: make them smaller");
  if (options.has_standby) opened_.chunks->check_standby();
  int result = 0;
  if (opened_.lease != nullptr) {
    result = opened_.chunks->learn_scripts();
    bool is_untouched = false;
    if (result == 0)
      result = opened_.chunks->take_fences(opened_.record.fence_token, opened_.record.is_new,
                                           &is_untouched);
    // Nothing can refuse it any more, and nobody has seen it yet if it is new.
    if (result == 0 && is_rewritten)
      if (Status s = opened_.begin_rewrite(); !s) return s;
    if (result == 0 && opened_.record.is_new) {
      if (Status s = opened_.servers->catalog->mark_ready(options.name, opened_.record.token); !s)
        return refuse_redis(options, s.code(), s.message());
      if (is_untouched && shared == nullptr)  // without memory for it, no hole is known
        static_cast<void>(opened_.written->cover(
            std::max(kHolesKnownMax, opened_.record.size_bytes), opened_.record.chunk_bytes));
    }
  } else {
    if (opened_.record.is_abandoned())
      return refuse_redis(
          options, EUCLEAN,
          "its making did not end: put it again, or remove it (`outcore store rm`)");
    if (opened_.record.is_new)
      return refuse_redis(options, EAGAIN,
                          "it is just being made by " + opened_.record.owner + ": try again");
    result = opened_.chunks->check_fences();
  }
  if (result == -EIO)
    return refuse_redis(
        options, EIO,
        "its servers lost some of it (more of them failed than there were replicas): "
        "remove it and store it anew");
  if (result != 0)
    return refuse_redis(options, -result,
                        std::string(::strerrordesc_np(-result)) + ": " + opened_.chunks->trouble());
  return {};
}

Result<OpenedRedis> RedisOpening::run(const OpenOptions& how, bool is_shared) {
  const RedisOptions& options = opened_.options;
  auto servers = RedisServers::connect(options);
  if (!servers) return servers.error();
  opened_.servers = std::move(servers.value());
  auto capacity = opened_.servers->catalog->capacity_bytes();
  if (!capacity) return refuse_redis(options, capacity.code(), capacity.message());
  // A store that exists may be written even if a replica has died since.
  Status replicated;
  if (how.is_writable) replicated = opened_.servers->check_replicas(options);
  if (!replicated && (options.is_strict || replicated.code() != EINVAL)) return replicated.error();
  OpenOptions allowed = how;
  allowed.may_create = how.may_create && replicated.ok();
  if (Status s = claim(allowed, capacity.value(), is_shared); !s) {
    const bool is_lacking = !replicated && (s.code() == ENOENT || s.code() == EFBIG);
    return is_lacking ? replicated.error() : s.error();
  }
  if (Status s = take_over(how.is_rewritten); !s) return s.error();
  if (how.is_writable)
    if (Status s = opened_.lease->start(); !s) return s.error();
  return std::move(opened_);
}

}  // namespace outcore::store
