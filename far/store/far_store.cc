#include "far/store/far_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/store/range.h"

namespace outcore::store {
namespace {

// Those parts of requests that go to one member.
template <size_t kMax>
class Parcel {
 public:
  explicit Parcel(const std::vector<std::unique_ptr<FarMember>>& members) : members_(members) {}

  void add(uint32_t member, const StoreRequest& part, int* result) {
    OC_CHECK(member < members_.size() && part.size_bytes != 0);
    if (count_ == kMax || (count_ > 0 && member != member_)) send();
    member_ = member;
    part_[count_] = part;
    result_[count_++] = result;
  }
  void send() {
    const std::span<StoreRequest> parts(part_, count_);
    const bool has_write =
        std::any_of(parts.begin(), parts.end(), [](const StoreRequest& r) { return r.is_write; });
    if (count_ > 0 && has_write) members_[member_]->store().transfer(parts);
    if (count_ > 0 && !has_write) members_[member_]->store().read_each(parts);
    for (size_t i = 0; i < count_; ++i)
      if (*result_[i] == 0) *result_[i] = part_[i].result;
    count_ = 0;
  }

 private:
  const std::vector<std::unique_ptr<FarMember>>& members_;
  StoreRequest part_[kMax];
  int* result_[kMax];
  size_t count_ = 0;
  uint32_t member_ = 0;
};

void copy(std::byte* there, std::byte* here, size_t size, bool is_write) {
  std::memcpy(is_write ? there : here, is_write ? here : there, size);
}

}  // namespace

Result<std::shared_ptr<FarStore>> FarStore::open(const FarOptions& options, const OpenOptions& how,
                                                 const StoreLimits& limits) {
  OC_CHECK(!options.members.empty());
  std::shared_ptr<FarStore> store(new FarStore);
  store->uri_ = options.uri;
  store->is_reserved_ = options.is_reserved;
  for (const RedisOptions& one : options.members) {
    auto member = FarMember::open(one, limits);
    if (!member) return member.error();
    if (member.value()->store().is_of_cluster() && options.members.size() > 1)
      return Error{EINVAL, "store '" + options.uri + "': " + one.servers.front().text +
                               " is of a cluster: name one server of it, and no others"};
    store->members_.push_back(std::move(member.value()));
  }
  store->chunk_bytes_ = store->members_.front()->chunk_bytes();
  OC_CHECK(store->chunk_bytes_ != 0);
  store->local_ = std::make_unique<LocalPart>(store->chunk_bytes_);
  store->traits_ = store->members_.front()->store().traits();
  store->traits_.is_volatile = true;
  if (const int error = store->resize(how.size_bytes); error != 0) {
    const Result<uint64_t> free = store->free_bytes();
    return base::system_error(error,
                              "reserve " + base::format_bytes(how.size_bytes) + " of '" +
                                  options.uri + "'" +
                                  (free ? " (" + base::format_bytes(free.value()) + " free)" : ""),
                              "name more servers, or give them more memory (maxmemory)");
  }
  return store;
}

FarStore::~FarStore() {
  const os::SignalBlock block;  // the program's handlers must not run in these threads
  std::vector<std::thread> ends;
  try {
    for (size_t i = 1; i < members_.size(); ++i)
      ends.emplace_back([&member = members_[i]] { member.reset(); });
  } catch (const std::exception&) {  // no thread to be had: the rest one after the other
  }
  if (!members_.empty()) members_.front().reset();
  for (std::thread& end : ends) end.join();
}

// Servers that do not answer, of which there may be many, do not keep the program from ending.
void FarStore::retire() {
  constexpr uint64_t kNsMax = 2'000'000'000;
  const uint64_t start_ns = base::now_ns();
  for (const auto& member : members_) {
    if (base::now_ns() - start_ns > kNsMax) return;
    member->store().expire_soon();
  }
}

Result<uint64_t> FarStore::free_bytes() {
  const std::lock_guard<std::mutex> guard(placing_);
  uint64_t sum = 0;
  for (const auto& member : members_) {
    const Result<uint64_t> free = member->free_bytes();
    if (!free) return free;
    sum += std::min(free.value(), UINT64_MAX - sum);
  }
  return sum + std::min(local_->free_bytes(), UINT64_MAX - sum);
}

template <size_t kMax>
void FarStore::carry_out(std::span<StoreRequest> batch) {
  Parcel<kMax> parcel(members_);
  for (StoreRequest& r : batch) {
    OC_CHECK(is_range_of(r.offset, r.size_bytes, size_bytes()));
    r.result = 0;
    for (size_t done = 0; done < r.size_bytes;) {
      const uint64_t at = r.offset + done, within = at % chunk_bytes_;
      const auto size =
          static_cast<size_t>(std::min<uint64_t>(r.size_bytes - done, chunk_bytes_ - within));
      Place place;
      const bool has_place = places_.find(at / chunk_bytes_, &place);
      if (has_place && place.member == local_member() && !local_->is_here())
        r.result = -EPERM;
      else if (has_place && place.member == local_member())
        copy(local_->at(place.chunk) + within, r.bytes + done, size, r.is_write);
      else if (has_place)
        parcel.add(place.member,
                   {place.chunk * chunk_bytes_ + within, r.bytes + done, size, r.is_write, 0},
                   &r.result);
      else if (r.is_write)
        r.result = -ENOSPC;
      else
        std::memset(r.bytes + done, 0, size);
      done += size;
    }
  }
  parcel.send();
}

int FarStore::read(uint64_t offset, std::span<std::byte> into) {
  StoreRequest request{offset, into.data(), into.size(), false, 0};
  carry_out<redis::Chunks::kReadBatchMax>({&request, 1});
  return request.result;
}

int FarStore::write(uint64_t offset, std::span<const std::byte> from) {
  StoreRequest request{offset, const_cast<std::byte*>(from.data()), from.size(), true, 0};
  carry_out<redis::Chunks::kBatchMax>({&request, 1});
  return request.result;
}

void FarStore::transfer(std::span<StoreRequest> batch) {
  carry_out<redis::Chunks::kBatchMax>(batch);
}

int FarStore::sync() {
  int error = 0;
  for (const auto& member : members_)
    if (const int result = member->store().sync(); error == 0) error = result;
  return error;
}

int FarStore::resize(uint64_t size_bytes) {
  const uint64_t end = base::round_up(size_bytes, chunk_bytes_) / chunk_bytes_;
  if (size_bytes > PlaceTable::kChunksMax * chunk_bytes_) return -EFBIG;
  if (const uint64_t before = this->size_bytes(); size_bytes > before && is_reserved_)
    if (const int error = place(before / chunk_bytes_, end); error != 0) return error;
  std::vector<uint64_t> local;
  const int error = set_size(size_bytes, end, &local);
  local_->free(local);
  return error;
}

int FarStore::set_size(uint64_t size_bytes, uint64_t end, std::vector<uint64_t>* local) {
  const std::lock_guard<std::mutex> guard(placing_);
  const uint64_t before = this->size_bytes();
  if (size_bytes < before) {
    // The rest of the last chunk must read zero if the store grows again.
    const uint64_t kept = std::min(before, end * chunk_bytes_);
    int error = discard_places(size_bytes, kept - size_bytes, Local::kZero);
    if (error == 0)
      error = give_back(end, base::round_up(before, chunk_bytes_) / chunk_bytes_, local);
    if (error != 0) return error;
  }
  size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

// Gives each of these chunks that has no place one: on the servers, or in local memory, for which
// pages may have to leave. REQUIRES: placing_ is not held.
int FarStore::place(uint64_t first, uint64_t end) {
  constexpr int kTriesMax = 8;  // others allocate and free meanwhile
  std::vector<uint64_t> local;
  int error = 0;
  for (int i = 0; i < kTriesMax; ++i) {
    uint64_t lacking = 0;
    {
      const std::lock_guard<std::mutex> guard(placing_);
      error = try_place(first, end, &local, &lacking);
    }
    if (error != -ENOSPC || lacking == 0 || local_->allocate(lacking, &local) != 0) break;
  }
  local_->free(local);  // those that were not needed after all
  return error;
}

// The same with chunks of local memory that were allocated for it, as far as the servers have no
// space. `lacking`: how many more are needed. REQUIRES: placing_ is held.
int FarStore::try_place(uint64_t first, uint64_t end, std::vector<uint64_t>* local,
                        uint64_t* lacking) {
  OC_CHECK(first <= end && end <= PlaceTable::kChunksMax);
  uint64_t missing = 0;
  for (uint64_t chunk = first; chunk < end; ++chunk) missing += places_.has(chunk) ? 0 : 1;
  std::vector<Place> found;
  std::vector<uint64_t> taken;
  int error = 0;
  for (uint32_t i = 0; i < members_.size() && found.size() < missing; ++i) {
    taken.clear();
    // A member that does not answer is skipped, and reported only if the others have too little
    // space.
    if (const int result = members_[i]->allocate(missing - found.size(), &taken); error == 0)
      error = result;
    OC_CHECK(taken.size() <= missing - found.size());
    for (const uint64_t chunk : taken) found.push_back({i, chunk});
  }
  for (; found.size() < missing && !local->empty(); local->pop_back())
    found.push_back({local_member(), local->back()});
  *lacking = missing - found.size();
  bool is_enough = *lacking == 0;
  if (is_enough) error = 0;
  if (!is_enough && error == 0) error = -ENOSPC;
  auto next = found.begin();
  for (uint64_t chunk = first; chunk < end && is_enough && next != found.end(); ++chunk) {
    if (places_.has(chunk)) continue;
    error = places_.set(chunk, *next);
    is_enough = error == 0;
    if (is_enough) ++next;
  }
  for (; next != found.end(); ++next) free_place(*next, local);
  return error;
}

// Frees the place. Chunks in local memory are left to the caller, who frees them without the lock.
// REQUIRES: placing_ is held.
void FarStore::free_place(const Place& place, std::vector<uint64_t>* local) {
  OC_CHECK(place.member <= local_member());
  if (place.member == local_member())
    local->push_back(place.chunk);
  else
    members_[place.member]->free(place.chunk);
}

// REQUIRES: placing_ is held; nobody reads or writes these chunks.
int FarStore::give_back(uint64_t first, uint64_t end, std::vector<uint64_t>* local) {
  if (first >= end) return 0;
  if (const int error =
          discard_places(first * chunk_bytes_, (end - first) * chunk_bytes_, Local::kLeave);
      error != 0)
    return error;
  for (uint64_t chunk = first; chunk < end; ++chunk) {
    Place place;
    if (!places_.find(chunk, &place)) continue;
    places_.clear(chunk);
    free_place(place, local);
  }
  return 0;
}

// Makes all placed chunks read zero. Neighbours on a member are discarded together.
int FarStore::discard_places(uint64_t offset, uint64_t size_bytes, Local local) {
  struct Run {
    uint32_t member = 0;
    uint64_t offset = 0, size_bytes = 0;
  } run;
  const auto carry_out = [&]() -> int {
    if (run.size_bytes == 0) return 0;
    return members_[run.member]->store().discard(run.offset, run.size_bytes);
  };
  for (uint64_t at = offset, end = offset + size_bytes; at < end;) {
    const uint64_t within = at % chunk_bytes_, size = std::min(end - at, chunk_bytes_ - within);
    Place place;
    const bool has_place = places_.find(at / chunk_bytes_, &place);
    at += size;
    if (!has_place) continue;
    if (place.member == local_member()) {
      if (local == Local::kZero) std::memset(local_->at(place.chunk) + within, 0, size);
      continue;
    }
    OC_CHECK(place.member < members_.size());
    const uint64_t there = place.chunk * chunk_bytes_ + within;
    if (place.member == run.member && there == run.offset + run.size_bytes) {
      run.size_bytes += size;
      continue;
    }
    if (const int error = carry_out(); error != 0) return error;
    run = {place.member, there, size};
  }
  return carry_out();
}

int FarStore::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (size_bytes == 0) return 0;
  return place(offset / chunk_bytes_,
               base::round_up(offset + size_bytes, chunk_bytes_) / chunk_bytes_);
}

int FarStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (local_->taken_bytes() != 0 && !local_->is_here()) return -EPERM;
  return discard_places(offset, size_bytes, Local::kZero);
}

int FarStore::release(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  std::vector<uint64_t> local;
  int error = 0;
  {
    const std::lock_guard<std::mutex> guard(placing_);
    uint64_t end = offset + size_bytes;
    if (end == this->size_bytes()) end = base::round_up(end, chunk_bytes_);
    error =
        give_back(base::round_up(offset, chunk_bytes_) / chunk_bytes_, end / chunk_bytes_, &local);
  }
  local_->free(local);
  return error;
}

bool FarStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  for (uint64_t at = offset, end = offset + size_bytes; at < end;) {
    const uint64_t within = at % chunk_bytes_, size = std::min(end - at, chunk_bytes_ - within);
    Place place;
    const bool has_place = places_.find(at / chunk_bytes_, &place);
    if (has_place && place.member == local_member()) return false;
    if (has_place &&
        !members_[place.member]->store().is_hole(place.chunk * chunk_bytes_ + within, size))
      return false;
    at += size;
  }
  return true;
}

bool FarStore::is_unreplicated() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->store().is_unreplicated(); });
}

std::string FarStore::remark() const {
  std::string text =
      std::to_string(members_.size()) + (members_.size() == 1 ? " part: " : " parts: ");
  for (size_t i = 0; i < members_.size(); ++i)
    text += (i == 0 ? "" : " | ") + members_[i]->store().remark();
  if (const uint64_t local = local_->taken_bytes(); local != 0)
    text += " | " + base::format_bytes(local) + " in local memory: the servers are full";
  return text;
}

Result<std::shared_ptr<Store>> open_far(const Uri& uri, const OpenOptions& how,
                                        const StoreLimits& limits) {
  auto options = read_far_options(uri);
  if (!options) return options.error();
  auto store = FarStore::open(options.value(), how, limits);
  if (!store) return store.error();
  return std::shared_ptr<Store>(std::move(store.value()));
}

}  // namespace outcore::store
