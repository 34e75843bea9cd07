#include "core/buffer/occupancy.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::buffer {

void Occupancy::open(const Board* board, const NamedFile& frames, int frames_fd, int marks_fd) {
  OC_CHECK(board_ == nullptr && board != nullptr);
  OC_CHECK(frames_fd >= 0 && marks_fd >= 0);
  board_ = board;
  frames_ = frames;
  frames_fd_ = frames_fd;
  marks_fd_ = marks_fd;
}

uint64_t Occupancy::marks_bytes() const {
  struct stat about;
  if (board_->written_files.load() == 0 || ::fstat(marks_fd_, &about) != 0) return 0;
  return static_cast<uint64_t>(about.st_blocks) * 512;
}

// The kernel counts them. Where that fails the buffer counts as full. Returns those of marks, too.
uint64_t Occupancy::count_pages(uint64_t* of_frames) const {
  struct stat about;
  // First, so that what comes in meanwhile is counted twice rather than not at all.
  const auto filled = static_cast<int64_t>(board_->filled_pages.load(std::memory_order_seq_cst));
  const uint64_t of_marks = marks_bytes() / kPage;
  if (!frames_.is_named_by(frames_fd_, &about)) {
    trusted_.store(0, std::memory_order_relaxed);
    *of_frames = board_->limit_bytes.load() / kPage;
    return *of_frames + of_marks;
  }
  *of_frames = static_cast<uint64_t>(about.st_blocks) * 512 / kPage;
  counted_pages_.store(static_cast<int64_t>(*of_frames + of_marks) - filled,
                       std::memory_order_release);
  trusted_.store(1, std::memory_order_release);
  return *of_frames + of_marks;
}

uint64_t Occupancy::pages_in_memory() const {
  uint64_t of_frames = 0;
  static_cast<void>(count_pages(&of_frames));
  return of_frames;
}

// Each page that is in memory was so when they were counted, or is among those reported since, or
// among those under way, which the caller counts before. A new mark counts as a page: it may be in
// a page of marks of its own.
uint64_t Occupancy::pages_at_most() const {
  uint64_t of_frames = 0;
  if (trusted_.load(std::memory_order_acquire) % (kTrusted + 1) == 0 ||
      trusted_.fetch_add(1, std::memory_order_acq_rel) >= kTrusted)
    return count_pages(&of_frames);
  // In this order: with a count that is newer than `filled`, the sum would be too low.
  const int64_t counted = counted_pages_.load(std::memory_order_seq_cst);
  const auto filled = static_cast<int64_t>(board_->filled_pages.load(std::memory_order_seq_cst));
  const int64_t pages = counted + filled;
  OC_CHECK(pages >= 0);
  return static_cast<uint64_t>(pages);
}

uint64_t Occupancy::used_by_members() const {
  uint64_t bytes = 0;
  const uint32_t end = board_->members_end.load(std::memory_order_acquire);
  OC_CHECK(end <= kMembersMax);
  for (uint32_t i = 0; i < end; ++i) {
    const MemberRecord& m = board_->members[i];
    bytes += m.reserved_pages.load(std::memory_order_seq_cst) * kPage + m.private_bytes.load();
  }
  return bytes;
}

// What is under way is in memory afterwards: so it is counted first, and perhaps twice. What leaves
// meanwhile, and comes back at once (marks), is under way all the time, but perhaps not yet at the
// first look; or it has come in since, and was reported.
template <typename Count>
uint64_t Occupancy::used_by_all(const Count& count_pages) const {
  const uint64_t filled = board_->filled_pages.load(std::memory_order_seq_cst);
  const uint64_t before = used_by_members();
  const uint64_t pages = count_pages();
  const uint64_t after = used_by_members();
  const uint64_t more = board_->filled_pages.load(std::memory_order_seq_cst) - filled;
  return std::max(before, after) + (pages + more) * kPage;
}

uint64_t Occupancy::used_bytes() const {
  return used_by_all([&] {
    uint64_t of_frames = 0;
    return count_pages(&of_frames);
  });
}

uint64_t Occupancy::used_bytes_at_most() const {
  return used_by_all([&] { return pages_at_most(); });
}

}  // namespace outcore::buffer
