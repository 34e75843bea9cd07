#include "core/buffer/buffer.h"

#include <atomic>
#include <map>
#include <mutex>

#include "core/base/assert.h"
#include "core/buffer/buffer_file.h"
#include "core/os/at_fork.h"
#include "core/os/wait.h"

namespace outcore::buffer {
namespace {

// The buffers that this process has joined. A forked child has others, and a lock of its own: a
// fork may come while another thread of the parent holds the lock.
struct Joined {
  explicit Joined(uint32_t of) : generation(of) {}
  const uint32_t generation;
  std::mutex lock;
  std::map<std::string, std::weak_ptr<Buffer>> buffers;
};

Joined& joined_by_process() {
  static std::atomic<Joined*> current{nullptr};
  for (Joined* seen = current.load();;) {
    if (seen != nullptr && seen->generation == os::process_generation()) return *seen;
    auto made = std::make_unique<Joined>(os::process_generation());
    if (current.compare_exchange_strong(seen, made.get())) return *made.release();
  }
}

}  // namespace

Buffer::Buffer(std::unique_ptr<Member> member)
    : member_(std::move(member)),
      puncher_(*member_),
      claims_(*member_),
      pins_(*member_),
      room_(*member_, puncher_),
      keeping_(*member_, puncher_),
      heir_(*this) {}

Result<std::shared_ptr<Buffer>> Buffer::join(const std::string& name, uint64_t limit_bytes) {
  Joined& all = joined_by_process();
  const std::lock_guard<std::mutex> guard(all.lock);
  if (std::shared_ptr<Buffer> known = all.buffers[name].lock(); known != nullptr) return known;
  Result<std::unique_ptr<Member>> member = Member::join(name, limit_bytes);
  if (!member) return member.error();
  auto buffer = std::make_shared<Buffer>(std::move(member).value());
  if (Status s = buffer->keeping_.start(); !s) return s.error();
  if (Status s = buffer->heir_.start(); !s) return s.error();
  all.buffers[name] = buffer;
  return buffer;
}

bool Buffer::acquire_private(uint64_t bytes, uint64_t wait_ns) {
  Board& board = member_->board();
  os::Word<uint64_t>& own = member_->record().private_bytes;
  const auto limit = [&] { return board.limit_bytes.load(); };
  {
    Member::FilesLock lock(*member_);  // two must not both find the room that is there once
    if (!lock.is_held()) return false;
    member_->clear_dead();
    const Kept kept = kept_by_members(board);
    const uint64_t all = bytes + kept.private_bytes;
    // As much as is pinned is for those who pin nothing.
    if (all > most_beside(limit()) || all + 2 * kept.pinned_bytes > limit()) return false;
    own.fetch_add(bytes);
  }
  if (room_.wait_for_less(limit(), wait_ns)) {
    room_.note_used(member_->occupancy().used_bytes());
    return true;
  }
  lower(own, bytes);
  return false;
}

void Buffer::release_private(uint64_t bytes) { lower(member_->record().private_bytes, bytes); }

}  // namespace outcore::buffer
