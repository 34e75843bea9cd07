#include "far/store/redis_store.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/base/units.h"
#include "core/os/wait.h"

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

}  // namespace

int RedisStore::read(uint64_t offset, std::span<std::byte> into) {
  int result = 0;
  Cutter<Chunks::kReadBatchMax> cutter(*chunks_, record_.chunk_bytes);
  cutter.add(Act::kRead, offset, into.data(), into.size(), &result);
  cutter.run();
  return result;
}

void RedisStore::read_each(std::span<StoreRequest> batch) {
  Cutter<Chunks::kReadBatchMax> cutter(*chunks_, record_.chunk_bytes);
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
  if (parts_ != nullptr) write_parts(batch);
}

// Everything but writes to packed chunks. A function of its own, because both have large frames,
// and a signal's stack is small.
void RedisStore::transfer_plain(std::span<StoreRequest> batch) {
  Cutter<Chunks::kBatchMax> cutter(*chunks_, record_.chunk_bytes);
  for (StoreRequest& r : batch) {
    r.result = 0;
    // A forked child does not own the lease.
    const bool has_lease = process_ == redis::generation() && lease_error_.load() == 0;
    if (r.is_write && (!is_writer_ || !has_lease)) r.result = is_writer_ ? -ESTALE : -EROFS;
    if (r.result != 0 || (r.is_write && parts_ != nullptr)) continue;
    if (r.is_write && knows_holes_) written_.mark(r.offset, r.size_bytes);
    cutter.add(r.is_write ? Act::kWrite : Act::kRead, r.offset, r.bytes, r.size_bytes, &r.result);
  }
  cutter.run();
  if (shared_lease_ == nullptr) return;
  for (const StoreRequest& r : batch)
    if (r.is_write) note_change(r.result);
}

// If there are several writers, a change without an answer may still be carried out later.
void RedisStore::note_change(int result) {
  if (result != 0 && result != -ENOSPC && result != -EROFS) stop_renewing();
}

// The writes of the batch, if chunks are packed.
void RedisStore::write_parts(std::span<StoreRequest> batch) {
  if (process_ != redis::generation() || lease_error_.load() != 0) return;
  Cutter<Chunks::kBatchMax, redis::PartWriter> cutter(*parts_, record_.chunk_bytes);
  for (StoreRequest& r : batch)
    if (r.is_write) cutter.add(Act::kWrite, r.offset, r.bytes, r.size_bytes, &r.result);
  cutter.run();
}

int RedisStore::discard(uint64_t offset, uint64_t size_bytes) {
  if (!is_writer_) return -EROFS;
  if (process_ != redis::generation()) return -ESTALE;
  int result = 0;
  // The last chunk reaches past the end of the store, and all of it becomes zero; unless there are
  // several writers, as another one may have enlarged the store.
  uint64_t end = offset + size_bytes;
  if (end == this->size_bytes() && shared_lease_ == nullptr)
    end = base::round_up(end, record_.chunk_bytes);
  const auto zero = [&](auto& carrier) {
    Cutter<Chunks::kBatchMax, std::decay_t<decltype(carrier)>> cutter(carrier, record_.chunk_bytes);
    cutter.add(Act::kZero, offset, nullptr, end - offset, &result);
    cutter.run();
  };
  parts_ != nullptr ? zero(*parts_) : zero(*chunks_);
  if (shared_lease_ != nullptr) note_change(result);
  if (result == 0 && knows_holes_) written_.clear_inside(offset, end - offset);
  return result;
}

bool RedisStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  return knows_holes_ && written_.is_untouched(offset, size_bytes);
}

int RedisStore::sync() {
  if (chunks_->has_lost()) return -EIO;
  return -lease_error_.load();
}

int RedisStore::resize(uint64_t size_bytes) {
  if (!is_writer_) return -EROFS;
  if (process_ != redis::generation()) return -ESTALE;
  const uint64_t now = this->size_bytes();
  if (size_bytes < now && shared_lease_ != nullptr) return -ENOTSUP;
  if (size_bytes < now)
    if (const int result = discard(size_bytes, now - size_bytes); result != 0) return result;
  const Result<int64_t> capacity = servers_->catalog->capacity_bytes();
  if (!capacity) return -capacity.code();
  const auto book = [&] {
    return servers_->catalog->resize(options_.name, record_.token, size_bytes, capacity.value());
  };
  Status resized = book();
  if (resized.code() == ENOSPC && reclaim_expired().ok()) resized = book();
  if (!resized) return -resized.code();
  if (shared_lease_ != nullptr)
    note_size(size_bytes);
  else
    size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

Result<uint64_t> RedisStore::size_bytes_max() {
  const Result<int64_t> capacity = servers_->catalog->capacity_bytes();
  if (!capacity) return capacity.error();
  if (capacity.value() < 0) return UINT64_MAX;
  const auto records = servers_->catalog->list();
  if (!records) return records.error();
  auto room_bytes = static_cast<uint64_t>(capacity.value());
  for (const redis::Record& record : records.value())
    if (record.name != options_.name && !record.is_expired())
      room_bytes -= std::min(room_bytes, record.booked_bytes);
  return redis::bookable_bytes(room_bytes, record_.chunk_bytes, record_.part_count);
}

// Asked by who has a buffer to share it in. Who has begun to write since it was opened has other
// fences; where they cannot be had, nobody knows.
std::string RedisStore::contents_id() const {
  if (is_writer_ || !record_.owner.empty()) return {};
  std::call_once(is_summed_, [this] {
    uint64_t sum = 0;
    const int error = chunks_->sum_changes(record_.fence_token, &sum);
    if (error == 0 && sum != 0)
      contents_id_ =
          identity() + "@" + std::to_string(record_.fence_token) + "+" + std::to_string(sum);
  });
  return contents_id_;
}

// Not by open(): a thread that the child does not have may have held its lock.
Result<std::shared_ptr<Store>> RedisStore::reopen() const {
  OC_CHECK(!is_writer_);
  const StoreLimits limits{traits_.read_concurrency, traits_.write_concurrency};
  const os::SignalBlock block;
  auto made = make(options_, {}, limits, false);
  if (!made) return made.error();
  return std::shared_ptr<Store>(std::move(made).value());
}

std::string RedisStore::remark() const {
  std::string text = servers_->servers->is_cluster() ? "a cluster" : "one server";
  text += ", values of " + base::format_bytes(record_.chunk_bytes);
  if (is_writer_)
    text += options_.replicas == 0
                ? ", no replicas: what a server holds is lost with it"
                : ", " + std::to_string(options_.replicas) + " acknowledging replica" +
                      (options_.replicas == 1 ? "" : "s");
  if (is_unreplicated()) text += ", of which some are gone: what is written has fewer copies";
  if (packer_ != nullptr) text += ", " + packer_->packing().text();
  if (options_.is_tls) text += ", TLS";
  if (record_.lifetime_ms != 0)
    text += ", reclaimed " + base::format_milliseconds(record_.lifetime_ms) + " after its last use";
  if (chunks_->has_lost()) text += "; the servers lost some of it";
  if (!has_lease())
    text += shared_lease_ == nullptr ? "; another writer has it" : "; its lease has ended";
  if (const std::string trouble = chunks_->trouble(); !trouble.empty())
    text += "; last failure: " + trouble;
  return text;
}

// A lease is valid as long as it is renewed. If its owner is stopped for longer than that, and
// another process has taken over, the owner's token is refused.
void RedisStore::keep_lease() {
  constexpr uint64_t kRenewalNs = redis::kLeaseMs * 1'000'000 / 3;
  // Tries more than once within a lease, and does not delay a process that closes.
  const uint64_t timeout_ns = std::min<uint64_t>(options_.timeout_ms * 1'000'000, kRenewalNs);
  redis::Catalog impatient(*servers_->servers, options_.replicas, timeout_ns);
  while (is_closing_.load(std::memory_order_acquire) == 0) {
    os::wait(&is_closing_, 0, kRenewalNs);
    if (is_closing_.load(std::memory_order_acquire) != 0) return;
    if (shared_lease_ != nullptr && !has_lease()) return;
    try {
      const Status renewed = shared_lease_ == nullptr
                                 ? impatient.renew(options_.name, record_.token)
                                 : shared_lease_->renew(timeout_ns);
      if (renewed.code() != ESTALE) continue;
    } catch (const std::bad_alloc&) {  // the next time, as if the server had not answered
      continue;
    }
    lease_error_.store(ESTALE);
    return;
  }
}

void RedisStore::end_keeper() {
  is_closing_.store(1, std::memory_order_release);
  os::wake_all(&is_closing_);
  if (keeper_.joinable()) keeper_.join();
}

void RedisStore::leave() {
  if (process_ != redis::generation() || !is_writer_) return;
  const os::SignalBlock block;
  end_keeper();
  if (lease_error_.exchange(ESTALE) == 0) static_cast<void>(shared_lease_->leave());
}

// Requests that members still send carry the old token, as does this store: the fences are taken as
// if by another process.
void RedisStore::break_lease(uint64_t fence_token) {
  const os::SignalBlock block;
  lease_error_.store(ESTALE);
  redis::Chunks successor(*servers_->servers, chunks_->layout(), options_.replicas,
                          options_.timeout_ms * 1'000'000);
  bool is_untouched = false;
  if (successor.learn_scripts() == 0)
    static_cast<void>(successor.take_fences(fence_token, false, &is_untouched));
}

// The thread that renews is not waited for, because it may be waiting for servers.
void RedisStore::expire_soon() {
  if (process_ != redis::generation() || !is_writer_ || !has_lease()) return;
  const os::SignalBlock block;
  is_closing_.store(1, std::memory_order_release);
  os::wake_all(&is_closing_);
  static_cast<void>(servers_->catalog->release(options_.name, record_.token, kRetiredMs));
}

RedisStore::~RedisStore() {
  if (process_ != redis::generation()) {       // the thread and the lease are the parent's
    if (keeper_.joinable()) keeper_.detach();  // banned-ok: it does not exist in this process
    return;
  }
  end_keeper();
  if (shared_lease_ != nullptr) {
    leave();
    return;
  }
  if (is_writer_ && lease_error_.load() == 0) {
    const os::SignalBlock block;
    const Status released = servers_->catalog->release(options_.name, record_.token);
    if (!is_removed_at_end_ || !released) return;
    RedisOptions hasty = options_;
    hasty.timeout_ms = std::min<uint64_t>(hasty.timeout_ms, 2000);
    static_cast<void>(servers_->remove(hasty, false));  // otherwise its lifetime ends soon
  }
}

}  // namespace outcore::store
