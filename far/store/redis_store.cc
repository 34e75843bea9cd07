#include "far/store/redis_store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "far/redis/generation.h"

namespace outcore::store {

using redis::Act;
using redis::ChunkRequest;
using redis::Chunks;

namespace {

// One batch of requests: they are cut at the ends of chunks, and sent when the batch is full.
// `Carrier` carries it out: Chunks, or PartWriter for writes to packed chunks.
template <size_t kMax, class Carrier = Chunks>
class Cutter {
 public:
  Cutter(Carrier& carrier, uint64_t chunk_bytes) : carrier_(carrier), chunk_bytes_(chunk_bytes) {}

  // `result` becomes the first error of its parts, when run() or a full batch has carried them out.
  void add(Act act, uint64_t offset, std::byte* bytes, uint64_t size_bytes, int* result) {
    while (size_bytes > 0) {
      if (count_ == kMax) run();
      const uint64_t within = offset % chunk_bytes_;
      const uint64_t part = std::min(size_bytes, chunk_bytes_ - within);
      ChunkRequest& r = request_[count_];
      r = {};
      r.act = act;
      r.at = offset / chunk_bytes_;
      r.offset = static_cast<uint32_t>(within);
      r.size_bytes = static_cast<uint32_t>(part);
      r.bytes = bytes;
      result_[count_++] = result;
      offset += part;
      size_bytes -= part;
      if (bytes != nullptr) bytes += part;
    }
  }
  void run() {
    carrier_.run({request_, count_});
    for (size_t i = 0; i < count_; ++i)
      if (request_[i].result != 0 && *result_[i] == 0) *result_[i] = request_[i].result;
    count_ = 0;
  }

 private:
  static_assert(kMax <= Chunks::kBatchMax);
  Carrier& carrier_;
  const uint64_t chunk_bytes_;
  ChunkRequest request_[kMax];
  int* result_[kMax];
  size_t count_ = 0;
};

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
    std::atomic<uint32_t> nobody{0};
    while (!holder.try_lock()) os::wait(&nobody, 0, 1'000'000);
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

Result<std::shared_ptr<Store>> RedisStore::open(const RedisOptions& options, const OpenOptions& how,
                                                const StoreLimits& limits) {
  if (options.name.empty())
    return refuse_redis(options, EINVAL, "no name: write redis://HOST:PORT/NAME");
  const os::SignalBlock block;  // also for the thread that renews the lease
  Writers writers;
  const std::string key = key_of(options);
  if (auto known = writers[key].lock(); known != nullptr && how.is_writable) {
    if (options.replicas > known->opened_.options.replicas ||
        (options.is_strict && !known->opened_.options.is_strict) ||
        options.is_tls != known->opened_.options.is_tls ||
        options.user != known->opened_.options.user)
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
      if (Status s = known->opened_.begin_rewrite(); !s) return s.error();
    return std::shared_ptr<Store>(known);
  }
  auto opened = RedisOpening(options).run(how, false);
  if (!opened) return opened.error();
  const std::shared_ptr<RedisStore> made(new RedisStore(std::move(opened).value(), limits));
  if (how.is_writable) writers[key] = made;
  return std::shared_ptr<Store>(made);
}

Result<std::shared_ptr<RedisStore>> RedisStore::open_shared(const RedisOptions& options,
                                                            const OpenOptions& how) {
  if (!how.is_writable)
    return refuse_redis(options, EINVAL, "to be one of several that write it, open it writable");
  if (options.name.empty())
    return refuse_redis(options, EINVAL, "no name: write redis://HOST:PORT/NAME");
  const os::SignalBlock block;
  auto opened = RedisOpening(options).run(how, true);
  if (!opened) return opened.error();
  return std::shared_ptr<RedisStore>(new RedisStore(std::move(opened).value(), {}));
}

RedisStore::RedisStore(OpenedRedis opened, const StoreLimits& limits)
    : opened_(std::move(opened)), size_bytes_(opened_.record.size_bytes) {
  traits_.is_fault_safe = !opened_.options.is_tls;
  traits_.has_slow_writes = true;
  traits_.has_many_in_flight = true;
  traits_.read_concurrency = limits.read_concurrency;
  traits_.write_concurrency = limits.write_concurrency;
}

int RedisStore::read(uint64_t offset, std::span<std::byte> into) {
  int result = 0;
  Cutter<Chunks::kReadBatchMax> cutter(*opened_.chunks, opened_.record.chunk_bytes);
  cutter.add(Act::kRead, offset, into.data(), into.size(), &result);
  cutter.run();
  return result;
}

void RedisStore::read_each(std::span<StoreRequest> batch) {
  Cutter<Chunks::kReadBatchMax> cutter(*opened_.chunks, opened_.record.chunk_bytes);
  for (StoreRequest& r : batch) {
    r.result = 0;
    cutter.add(Act::kRead, r.offset, r.bytes, r.size_bytes, &r.result);
  }
  cutter.run();
}

int RedisStore::write(uint64_t offset, std::span<const std::byte> from) {
  StoreRequest request{offset, const_cast<std::byte*>(from.data()), from.size(), true, 0};
  transfer({&request, 1});
  return request.result;
}

void RedisStore::transfer(std::span<StoreRequest> batch) {
  transfer_plain(batch);
  if (opened_.parts != nullptr) write_parts(batch);
}

// Everything but writes to packed chunks. A function of its own, because both have large frames,
// and a signal's stack is small.
void RedisStore::transfer_plain(std::span<StoreRequest> batch) {
  Cutter<Chunks::kBatchMax> cutter(*opened_.chunks, opened_.record.chunk_bytes);
  for (StoreRequest& r : batch) {
    r.result = 0;
    if (r.is_write && !may_write()) r.result = is_writer() ? -ESTALE : -EROFS;
    if (r.result != 0 || (r.is_write && opened_.parts != nullptr)) continue;
    if (r.is_write) opened_.written->mark(r.offset, r.size_bytes);
    cutter.add(r.is_write ? Act::kWrite : Act::kRead, r.offset, r.bytes, r.size_bytes, &r.result);
  }
  cutter.run();
  if (!is_shared()) return;
  for (const StoreRequest& r : batch)
    if (r.is_write) note_change(r.result);
}

// If there are several writers, a change without an answer may still be carried out later.
void RedisStore::note_change(int result) {
  if (result != 0 && result != -ENOSPC && result != -EROFS) stop_renewing();
}

// The writes of the batch, if chunks are packed.
void RedisStore::write_parts(std::span<StoreRequest> batch) {
  if (!may_write()) return;
  Cutter<Chunks::kBatchMax, redis::PartWriter> cutter(*opened_.parts, opened_.record.chunk_bytes);
  for (StoreRequest& r : batch)
    if (r.is_write) cutter.add(Act::kWrite, r.offset, r.bytes, r.size_bytes, &r.result);
  cutter.run();
}

int RedisStore::discard(uint64_t offset, uint64_t size_bytes) {
  if (!is_writer()) return -EROFS;
  if (!opened_.lease->is_of_this_process()) return -ESTALE;
  int result = 0;
  // The last chunk reaches past the end of the store, and all of it becomes zero; unless there are
  // several writers, as another one may have enlarged the store.
  uint64_t end = offset + size_bytes;
  if (end == this->size_bytes() && !is_shared())
    end = base::round_up(end, opened_.record.chunk_bytes);
  const auto zero = [&](auto& carrier) {
    Cutter<Chunks::kBatchMax, std::decay_t<decltype(carrier)>> cutter(carrier,
                                                                      opened_.record.chunk_bytes);
    cutter.add(Act::kZero, offset, nullptr, end - offset, &result);
    cutter.run();
  };
  opened_.parts != nullptr ? zero(*opened_.parts) : zero(*opened_.chunks);
  if (is_shared()) note_change(result);
  if (result == 0) opened_.written->clear_inside(offset, end - offset);
  return result;
}

bool RedisStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  return opened_.written->capacity_bytes() != 0 &&
         opened_.written->is_untouched(offset, size_bytes);
}

int RedisStore::sync() {
  if (opened_.chunks->has_lost()) return -EIO;
  return is_writer() ? -opened_.lease->error() : 0;
}

int RedisStore::resize(uint64_t size_bytes) {
  if (!is_writer()) return -EROFS;
  if (!opened_.lease->is_of_this_process()) return -ESTALE;
  const uint64_t now = this->size_bytes();
  if (size_bytes < now && is_shared()) return -ENOTSUP;
  if (size_bytes < now)
    if (const int result = discard(size_bytes, now - size_bytes); result != 0) return result;
  const Result<int64_t> capacity = opened_.servers->catalog->capacity_bytes();
  if (!capacity) return -capacity.code();
  const auto book = [&] {
    return opened_.servers->catalog->resize(opened_.options.name, opened_.record.token, size_bytes,
                                            capacity.value());
  };
  Status resized = book();
  if (resized.code() == ENOSPC && opened_.servers->reclaim_expired(opened_.options).ok())
    resized = book();
  if (!resized) return -resized.code();
  if (is_shared())
    note_size(size_bytes);
  else
    size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

Result<uint64_t> RedisStore::size_bytes_max() {
  const Result<int64_t> capacity = opened_.servers->catalog->capacity_bytes();
  if (!capacity) return capacity.error();
  if (capacity.value() < 0) return UINT64_MAX;
  const auto records = opened_.servers->catalog->list();
  if (!records) return records.error();
  auto room_bytes = static_cast<uint64_t>(capacity.value());
  for (const redis::Record& record : records.value())
    if (record.name != opened_.options.name && !record.is_expired())
      room_bytes -= std::min(room_bytes, record.booked_bytes);
  return redis::bookable_bytes(room_bytes, opened_.record.chunk_bytes, opened_.record.part_count);
}

// Asked by who has a buffer to share it in. Who has begun to write since it was opened has other
// fences; where they cannot be had, nobody knows.
std::string RedisStore::contents_id() const {
  if (is_writer() || !opened_.record.owner.empty()) return {};
  std::call_once(is_summed_, [this] {
    uint64_t sum = 0;
    const int error = opened_.chunks->sum_changes(opened_.record.fence_token, &sum);
    if (error == 0 && sum != 0)
      contents_id_ =
          identity() + "@" + std::to_string(opened_.record.fence_token) + "+" + std::to_string(sum);
  });
  return contents_id_;
}

// Not by open(): a thread that the child does not have may have held its lock.
Result<std::shared_ptr<Store>> RedisStore::reopen() const {
  OC_CHECK(!is_writer());
  const StoreLimits limits{traits_.read_concurrency, traits_.write_concurrency};
  const os::SignalBlock block;
  auto opened = RedisOpening(opened_.options).run({}, false);
  if (!opened) return opened.error();
  return std::shared_ptr<Store>(new RedisStore(std::move(opened).value(), limits));
}

std::string RedisStore::remark() const {
  std::string text = opened_.servers->servers->is_cluster() ? "a cluster" : "one server";
  text += ", values of " + base::format_bytes(opened_.record.chunk_bytes);
  if (is_writer())
    text += opened_.options.replicas == 0
                ? ", no replicas: what a server holds is lost with it"
                : ", " + std::to_string(opened_.options.replicas) + " acknowledging replica" +
                      (opened_.options.replicas == 1 ? "" : "s");
  if (is_unreplicated()) text += ", of which some are gone: what is written has fewer copies";
  if (opened_.packer != nullptr) text += ", " + opened_.packer->packing().text();
  if (opened_.options.is_tls) text += ", TLS";
  if (opened_.record.lifetime_ms != 0)
    text += ", reclaimed " + base::format_milliseconds(opened_.record.lifetime_ms) +
            " after its last use";
  if (opened_.chunks->has_lost()) text += "; the servers lost some of it";
  if (!has_lease()) text += is_shared() ? "; its lease has ended" : "; another writer has it";
  if (const std::string trouble = opened_.chunks->trouble(); !trouble.empty())
    text += "; last failure: " + trouble;
  return text;
}

// Requests that members still send carry the old token, as does this store: the fences are taken as
// if by another process.
void RedisStore::break_lease(uint64_t fence_token) {
  const os::SignalBlock block;
  stop_renewing();
  redis::Chunks successor(*opened_.servers->servers, opened_.chunks->layout(),
                          opened_.options.replicas, opened_.options.timeout_ms * 1'000'000);
  bool is_untouched = false;
  if (successor.learn_scripts() == 0)
    static_cast<void>(successor.take_fences(fence_token, false, &is_untouched));
}

}  // namespace outcore::store
