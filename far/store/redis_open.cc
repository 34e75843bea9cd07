// How a store in far memory is opened, listed and removed. See redis_store.h.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "far/redis/generation.h"
#include "far/store/redis_store.h"

namespace outcore::store {
namespace {

constexpr uint32_t kPartCount = 256;
constexpr uint64_t kHolesKnownMax = uint64_t{1} << 40;

void pause_ms(uint64_t ms) {
  std::atomic<uint32_t> nobody{0};
  os::wait(&nobody, 0, ms * 1'000'000);
}

// The writers of this process, by servers and name: a process that maps a store twice gets the same
// store. A forked child has none of its parent's, whose table may have been changing at the fork.
class Writers {
 public:
  using Map = std::map<std::string, std::weak_ptr<RedisStore>>;

  Writers() {
    static redis::Holder holder;
    static Map* map = nullptr;
    static uint32_t owner = 0;
    holder_ = &holder;
    while (!holder.try_lock()) pause_ms(1);
    if (std::exchange(owner, redis::generation()) != redis::generation()) map = new Map;
    map_ = map;
  }
  ~Writers() { holder_->unlock(); }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  std::weak_ptr<RedisStore>& operator[](const std::string& key) { return (*map_)[key]; }

 private:
  redis::Holder* holder_;
  Map* map_;
};

std::string key_of(const RedisOptions& options) {
  std::string key;
  for (const redis::Address& server : options.servers) key += std::string(server.text) + ",";
  return key + "/" + options.name;
}

}  // namespace

Status RedisStore::claim(const OpenOptions& how, int64_t capacity_bytes, bool is_shared) {
  redis::Claim claim;
  claim.name = options_.name;
  claim.is_writer = how.is_writable;
  claim.may_create = how.may_create;
  claim.is_rewritten = how.is_rewritten;
  claim.size_bytes = how.size_bytes;
  is_shared ? claim.set_member() : claim.set_owner();
  const bool is_packed =
      options_.packing && options_.packing->kind != packing::Packing::Kind::kNone;
  claim.chunk_bytes = options_.chunk_bytes != 0 ? options_.chunk_bytes
                      : is_packed               ? kPackedChunkBytes
                                                : kRedisChunkBytes;
  if (is_packed && is_shared)
    return refuse_redis(options_, ENOTSUP,
                        "one process writes compressed chunks, not several: leave out compress=");
  if (is_packed) {
    // Before anything is created, because the compression library may be missing.
    if (auto packer = packing::Packer::make(*options_.packing, claim.chunk_bytes); !packer)
      return refuse_redis(options_, packer.code(), packer.message());
    claim.packing = options_.packing->text();
  }
  claim.part_count = kPartCount;
  claim.replicas = options_.replicas;
  claim.lifetime_ms = options_.lifetime_ms;
  claim.capacity_bytes = capacity_bytes;
  auto record = servers_->catalog->open(claim);
  if (record.code() == ENOSPC) {
    if (Status s = reclaim_expired(); !s) return s;
    record = servers_->catalog->open(claim);
  }
  if (!record) return refuse_redis(options_, record.code(), record.message());
  record_ = record.value();
  is_writer_ = how.is_writable;
  if (is_shared)
    shared_lease_ = std::make_unique<redis::SharedLease>(
        *servers_->servers, options_.replicas, options_.timeout_ms * 1'000'000, claim, record_);
  if (options_.chunk_bytes != 0 && options_.chunk_bytes != record_.chunk_bytes)
    return refuse_redis(options_, EINVAL,
                        "it was made with chunk=" + std::to_string(record_.chunk_bytes) +
                            ": leave out the parameter, or remove the store first");
  return choose_packer();
}

// As the store was created; only the level of compression may differ.
Status RedisStore::choose_packer() {
  const std::string made = record_.packing.empty() ? "none" : record_.packing;
  const auto noted = packing::Packing::parse(made);
  if (!noted)
    return refuse_redis(options_, ENOTSUP,
                        "it was made with compress=" + made + ", which this version does not know");
  packing::Packing packing = noted.value();
  if (options_.packing && options_.packing->kind != packing.kind)
    return refuse_redis(options_, EINVAL,
                        "it was made with compress=" + made +
                            ": leave out the parameter, or remove the store first");
  if (options_.packing) packing = *options_.packing;
  if (packing.kind == packing::Packing::Kind::kNone) return {};
  auto packer = packing::Packer::make(packing, record_.chunk_bytes);
  if (!packer) return refuse_redis(options_, packer.code(), packer.message());
  packer_ = std::move(packer.value());
  return {};
}

// Removes stores whose lifetime is over, if their space is needed.
Status RedisStore::reclaim_expired() {
  auto records = servers_->catalog->list();
  if (!records) return refuse_redis(options_, records.code(), records.message());
  for (const redis::Record& record : records.value()) {
    const bool is_retired = record.damage.empty() && record.owner.empty() &&
                            record.lifetime_ms == kRetiredMs && record.left_ms > 0;
    if (record.name == options_.name || !(record.is_expired() || is_retired)) continue;
    if (is_retired) pause_ms(std::min(kRetiredMs, static_cast<uint64_t>(record.left_ms)) + 1);
    RedisOptions options = options_;
    options.name = record.name;
    if (Status s = servers_->remove(options, true); !s && s.code() != EBUSY && s.code() != ENOENT)
      return s;
  }
  return {};
}

Status RedisStore::begin_rewrite() {
  const Status s = servers_->catalog->begin_rewrite(options_.name, record_.token);
  return s ? s : refuse_redis(options_, s.code(), s.message());
}

// A writer takes the fences; a reader checks them.
Status RedisStore::take_over(bool is_rewritten) {
  const redis::Layout layout{record_.id, record_.part_count, record_.chunk_bytes,
                             packer_ != nullptr};
  const uint64_t timeout_ns = options_.timeout_ms * 1'000'000;
  chunks_ =
      std::make_unique<redis::Chunks>(*servers_->servers, layout, options_.replicas, timeout_ns,
                                      packer_, shared_lease_ ? shared_lease_->member() : "");
  if (packer_ != nullptr && is_writer_)
    parts_ = std::make_unique<redis::PartWriter>(
        *chunks_, packer_, timeout_ns, [this](uint64_t chunk, bool is_written) {
          const uint64_t offset = chunk * record_.chunk_bytes;
          const bool is_untouched = is_hole(offset, record_.chunk_bytes);
          if (is_written && knows_holes_) written_.mark(offset, record_.chunk_bytes);
          return is_untouched;
        });
  if (!chunks_->has_spaces() || (parts_ != nullptr && !parts_->has_spaces()))
    return refuse_redis(options_, ENOMEM, "no memory to pack chunks in: make them smaller");
  int result = 0;
  if (is_writer_) {
    result = chunks_->learn_scripts();
    bool is_untouched = false;
    if (result == 0)
      result = chunks_->take_fences(record_.fence_token, record_.is_new, &is_untouched);
    // Nothing can refuse it any more, and nobody has seen it yet if it is new.
    if (result == 0 && is_rewritten)
      if (Status s = begin_rewrite(); !s) return s;
    if (result == 0 && record_.is_new) {
      if (Status s = servers_->catalog->mark_ready(options_.name, record_.token); !s)
        return refuse_redis(options_, s.code(), s.message());
      knows_holes_ =
          is_untouched && shared_lease_ == nullptr &&
          written_.cover(std::max(kHolesKnownMax, record_.size_bytes), record_.chunk_bytes) == 0;
    }
  } else {
    if (record_.is_new)
      return refuse_redis(options_, EAGAIN,
                          "it is just being made by " + record_.owner + ": try again");
    result = chunks_->check_fences();
  }
  if (result == -EIO)
    return refuse_redis(
        options_, EIO,
        "its servers lost some of it (more of them failed than there were replicas): "
        "remove it and store it anew");
  if (result != 0)
    return refuse_redis(options_, -result,
                        std::string(::strerrordesc_np(-result)) + ": " + chunks_->trouble());
  return {};
}

Result<std::shared_ptr<Store>> RedisStore::open(const RedisOptions& options, const OpenOptions& how,
                                                const StoreLimits& limits) {
  if (options.name.empty())
    return refuse_redis(options, EINVAL, "no name: write redis://HOST:PORT/NAME");
  const os::SignalBlock block;  // also for the thread that renews the lease
  Writers writers;
  const std::string key = key_of(options);
  if (auto known = writers[key].lock(); known != nullptr && how.is_writable) {
    if (options.replicas > known->options_.replicas ||
        (options.is_strict && !known->options_.is_strict) ||
        options.is_tls != known->options_.is_tls || options.user != known->options_.user)
      return refuse_redis(
          options, EINVAL,
          "this process has it open with other replicas, tls or user: use the same");
    if (options.packing && *options.packing != known->packing())
      return refuse_redis(
          options, EINVAL,
          "this process has it open with compress=" + known->packing().text() + ": use the same");
    if (how.size_bytes > known->size_bytes()) {
      const int result = how.may_create ? known->resize(how.size_bytes) : -EFBIG;
      if (result != 0)
        return refuse_redis(options, -result, "this process has it open, smaller than asked for");
    }
    if (how.is_rewritten)
      if (Status s = known->begin_rewrite(); !s) return s.error();
    return std::shared_ptr<Store>(known);
  }
  auto made = make(options, how, limits, false);
  if (!made) return made.error();
  if (how.is_writable) writers[key] = made.value();
  return std::shared_ptr<Store>(std::move(made).value());
}

Result<std::shared_ptr<RedisStore>> RedisStore::open_shared(const RedisOptions& options,
                                                            const OpenOptions& how) {
  OC_ASSERT(how.is_writable);
  if (options.name.empty())
    return refuse_redis(options, EINVAL, "no name: write redis://HOST:PORT/NAME");
  const os::SignalBlock block;
  return make(options, how, {}, true);
}

Result<std::shared_ptr<RedisStore>> RedisStore::make(const RedisOptions& options,
                                                     const OpenOptions& how,
                                                     const StoreLimits& limits, bool is_shared) {
  std::shared_ptr<RedisStore> store(new RedisStore(options));
  auto servers = RedisServers::connect(options);
  if (!servers) return servers.error();
  store->servers_ = std::move(servers.value());
  auto capacity = store->servers_->catalog->capacity_bytes();
  if (!capacity) return refuse_redis(options, capacity.code(), capacity.message());
  // A store that exists may be written even if a replica has died since.
  Status replicated;
  if (how.is_writable) replicated = store->servers_->check_replicas(options);
  if (!replicated && (options.is_strict || replicated.code() != EINVAL)) return replicated.error();
  OpenOptions allowed = how;
  allowed.may_create = how.may_create && replicated.ok();
  if (Status s = store->claim(allowed, capacity.value(), is_shared); !s) {
    const bool is_lacking = !replicated && (s.code() == ENOENT || s.code() == EFBIG);
    return is_lacking ? replicated.error() : s.error();
  }
  if (Status s = store->take_over(how.is_rewritten); !s) return s.error();
  store->size_bytes_.store(store->record_.size_bytes);
  store->traits_.is_fault_safe = !options.is_tls;
  store->traits_.has_slow_writes = true;
  store->traits_.has_many_in_flight = true;
  store->traits_.read_concurrency = limits.read_concurrency;
  store->traits_.write_concurrency = limits.write_concurrency;
  if (!how.is_writable) return store;
  try {
    store->keeper_ = std::thread([kept = store.get()] { kept->keep_lease(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start a thread for the lease of " + options.uri);
  }
  return store;
}

}  // namespace outcore::store
