// FarStore: unnamed space in far memory that disappears with the process. It lies on several single
// Redis or Valkey servers, which are filled in the given order, or on one cluster.
//
// Chunks get their places when space is reserved: with the size, or by reserve() if the URI says
// reserve=no. This follows DLM (HPCS 2008), whose page table says on which host each page is, and
// which adds up local memory and that of the servers: what does not fit on the servers is kept in
// the room that the engine lends. Fault safe without TLS. A forked child cannot use it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/store/booking.h"
#include "core/store/room.h"
#include "far/store/far_member.h"
#include "far/store/far_options.h"
#include "far/store/local_part.h"
#include "far/store/place_table.h"
#include "outcore/store.h"

namespace outcore::store {

class FarStore final : public Store, public Booking, public Lodger {
 public:
  // Frees the space on all servers at the same time, so a server that is gone is waited for only
  // once.
  ~FarStore() override;
  // Errors: those of RedisStore::open; EINVAL (a cluster among several servers); ENOSPC.
  static Result<std::shared_ptr<FarStore>> open(const FarOptions& options, const OpenOptions& how,
                                                const StoreLimits& limits);

  // Bytes that could be reserved now, local ones included; UINT64_MAX: the servers have no limit.
  Result<uint64_t> free_bytes() override;
  uint64_t granule_bytes() const override { return chunk_bytes_; }
  // The process ends: see RedisStore::expire_soon().
  void retire() override;

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  // -ENOSPC: no space was reserved there.
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int sync() override;
  int resize(uint64_t size_bytes) override;
  // Reserves the whole range, or returns -errno and reserves nothing.
  int reserve(uint64_t offset, uint64_t size_bytes) override;
  int discard(uint64_t offset, uint64_t size_bytes) override;
  // Frees the chunks that lie completely inside.
  int release(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return uri_; }
  std::string remark() const override;
  bool is_unreplicated() const override;
  void use_room(std::shared_ptr<Room> room) override { local_->use_room(std::move(room)); }

 private:
  enum class Local : uint8_t { kZero, kLeave };  // chunks in local memory: the caller gives them
  FarStore() = default;
  int place(uint64_t first, uint64_t end);
  int try_place(uint64_t first, uint64_t end, std::vector<uint64_t>* local, uint64_t* lacking);
  int set_size(uint64_t size_bytes, uint64_t end, std::vector<uint64_t>* local);
  uint32_t local_member() const { return static_cast<uint32_t>(members_.size()); }
  void free_place(const Place& place, std::vector<uint64_t>* local);
  int give_back(uint64_t first, uint64_t end, std::vector<uint64_t>* local);
  int discard_places(uint64_t offset, uint64_t size_bytes, Local local);
  template <size_t kMax>
  void carry_out(std::span<StoreRequest> batch);

  std::string uri_;
  bool is_reserved_ = true;
  uint64_t chunk_bytes_ = 0;
  StoreTraits traits_;
  std::vector<std::unique_ptr<FarMember>> members_;
  std::unique_ptr<LocalPart> local_;
  PlaceTable places_;
  std::atomic<uint64_t> size_bytes_{0};
  std::mutex placing_;  // guards the members' chunks, and changes of places
};

Result<std::shared_ptr<Store>> open_far(const Uri& uri, const OpenOptions& how,
                                        const StoreLimits& limits);

}  // namespace outcore::store
