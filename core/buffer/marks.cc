#include "core/buffer/marks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/heirs.h"
#include "core/os/buffer_frames.h"
#include "core/os/file_calls.h"

namespace outcore::buffer {
namespace {

// No member has this number: the first in a place has generation 1.
constexpr Writer kEnded{1};
constexpr int32_t kInheriting = -1;  // in the place of a writer's descriptor

bool is_alive(const Member& member, Writer writer) {
  return writer.is_any() && writer.index() < kMembersMax && member.is_alive(writer);
}

uint32_t writers_of(const FileRecord& file) {
  return static_cast<uint32_t>(
      std::count_if(file.writers.begin(), file.writers.end(),
                    [](const auto& writer) { return writer.load() != 0; }));
}

}  // namespace

Result<std::unique_ptr<Marks>> Marks::open(Member& member, FileRecord& file, int fd) {
  OC_CHECK(file.pages != 0 && file.first_page % kGroup == 0);
  for (uint32_t slot = 0; slot < kWritersMax; ++slot) {
    uint64_t nobody = 0;
    if (!file.writers[slot].compare_exchange_strong(nobody, member.as_writer().bits())) continue;
    file.writer_fds[slot].store(fd + 1);
    file.halted[slot].store(0);
    file.ending.fetch_and(~(uint64_t{1} << slot));
    std::unique_ptr<Marks> marks(new Marks(member, file, slot));
    if (Status s = marks->map(); !s) return s.error();
    return marks;
  }
  return Error{EUSERS, std::to_string(kWritersMax) + " processes write it already"};
}

Result<std::unique_ptr<Marks>> Marks::open_to_inherit(Member& member, FileRecord& file) {
  Result<std::unique_ptr<Marks>> opened = open(member, file, kInheriting - 1);
  if (opened || opened.code() != EUSERS) return opened;
  for (uint32_t slot = 0; slot < kWritersMax; ++slot) {
    uint64_t bits = file.writers[slot].load();
    if (is_alive(member, Writer(bits)) ||
        !file.writers[slot].compare_exchange_strong(bits, member.as_writer().bits()))
      continue;
    file.writer_fds[slot].store(kInheriting);
    std::unique_ptr<Marks> marks(new Marks(member, file, slot));
    if (Status s = marks->map(); !s) return s.error();
    marks->leaves_marks_ = true;  // until all are stored (note_all_stored)
    marks->clear_storing(marks->own_bit());
    return marks;
  }
  return opened;
}

Status Marks::map() {
  const size_t bytes = mapped_bytes();
  // After mlockall(MCL_FUTURE) all words would come into memory at once, and stay.
  void* const at = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, member_.marks_fd(),
                          static_cast<off_t>(file_.first_page * sizeof(uint64_t)));
  if (at != MAP_FAILED) ::munlock(at, bytes);
  if (at == MAP_FAILED || ::mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    if (at != MAP_FAILED) ::munmap(at, bytes);
    // Another may have been in its place, and marked pages.
    file_.writer_fds[slot_].store(0);
    file_.writers[slot_].store(file_.is_written.load() != 0 ? kEnded.bits() : 0);
    is_closed_ = true;
    return base::system_error(error, "map the marks of written pages", "raise vm.max_map_count");
  }
  ::madvise(at, bytes, MADV_DONTFORK);
  ::madvise(at, bytes, MADV_DONTDUMP);
  words_ = static_cast<os::Word<uint64_t>*>(at);
  // Never too low, whoever dies here.
  if (member_.board().written_files.fetch_add(1) == 0) member_.board().written_pages.store(0);
  if (file_.is_written.exchange(1) != 0) member_.board().written_files.fetch_sub(1);
  return {};
}

Marks::~Marks() {
  OC_CHECK(is_closed_);
  if (words_ != nullptr) ::munmap(words_, mapped_bytes());
}

bool Marks::close(bool may_end) {
  OC_CHECK(!is_closed_);
  is_closed_ = true;
  file_.writer_fds[slot_].store(0);
  // Unless others have taken it on: who has lost its lock looks dead to them.
  uint64_t own = member_.as_writer().bits();
  file_.writers[slot_].compare_exchange_strong(own, leaves_marks_ ? kEnded.bits() : 0);
  for (uint32_t slot = 0; slot < kWritersMax; ++slot)  // whoever comes next takes them on again
    if ((adopted_.load() >> slot & 1) != 0) file_.writers[slot].store(kEnded.bits());
  const bool is_last = may_end && writers() == 0;
  // The memory of the words counts as long as somebody writes (Occupancy). By their addresses: the
  // descriptor may be another file's by now.
  if (is_last && words_ != nullptr) {
    ::munlock(words_, mapped_bytes());  // locked memory is not given up
    ::madvise(words_, mapped_bytes(), MADV_REMOVE);
  }
  if (is_last && file_.is_written.exchange(0) != 0) member_.board().written_files.fetch_sub(1);
  return is_last;
}

os::Word<uint64_t>& Marks::word(uint64_t page) const {
  OC_ASSERT(page < pages_);
  return words_[page];
}

bool Marks::read_words(uint64_t first, std::span<uint64_t> into) const {
  OC_CHECK(first + into.size() <= pages_);
  return os::read_all(member_.marks_fd(), (file_.first_page + first) * sizeof(uint64_t),
                      std::as_writable_bytes(into)) == 0;
}

// What cannot be read counts as marked.
uint64_t Marks::Look::word(uint64_t page) {
  OC_ASSERT(page < marks_.pages_);
  if (const uint64_t first = base::round_down(page, kGroup); first != first_) {
    first_ = first;
    if (!marks_.read_words(first, std::span(words_).first(std::min(kGroup, marks_.pages_ - first))))
      words_.fill(kWriters);
  }
  return words_[page - first_];
}

bool Marks::has_memory(uint64_t first, uint64_t end) const {
  OC_CHECK(first < end && end - first <= kTogetherMax && end <= pages_);
  const uint64_t from = base::round_down(first * sizeof(uint64_t), kPage);
  const uint64_t bytes = base::round_up(end * sizeof(uint64_t), kPage) - from;
  unsigned char present[2] = {};
  OC_CHECK(bytes <= sizeof present * kPage);
  if (os::look_up_presence(reinterpret_cast<const std::byte*>(words_) + from, bytes, present) != 0)
    return false;
  return (present[0] & 1) != 0 && (bytes == kPage || (present[1] & 1) != 0);
}

// A group without marks may be freed by who did not see this one yet: then it is gone. And who
// finds the page marked waits as well: the thread that marked it may be waiting still.
int Marks::set(uint64_t first, uint64_t count, uint64_t* newly) {
  OC_CHECK(count != 0 && count <= kTogetherMax && first + count <= pages_);
  *newly = 0;
  os::Word<uint64_t>& written_pages = member_.board().written_pages;
  uint64_t counted = 0;  // bits: pages that nobody had marked
  for (;;) {
    uint64_t unmarked = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t before = word(first + i).fetch_or(own_bit(), std::memory_order_seq_cst);
      if ((before & own_bit()) != 0) continue;
      ++unmarked;
      const uint64_t bit = uint64_t{1} << i;
      const bool is_first = (before & kWriters) == 0, was_counted = (counted & bit) != 0;
      if (is_first && !was_counted) written_pages.fetch_add(1, std::memory_order_relaxed);
      if (!is_first && was_counted) lower(written_pages, uint64_t{1});
      counted = is_first ? counted | bit : counted & ~bit;
    }
    *newly = std::max(*newly, unmarked);
    if (!member_.wait_for_punchers(file_.first_page + first, count)) return -ETIMEDOUT;
    bool are_all_own = true;
    for (uint64_t page = first; page < first + count; ++page)
      are_all_own = are_all_own && is_own(page);
    if (are_all_own) return 0;
  }
}

bool Marks::is_stale(uint64_t storing) const {
  OC_ASSERT(storing != 0 && storing <= kWritersMax);
  const uint32_t slot = static_cast<uint32_t>(storing) - 1;
  if (slot == slot_) return false;
  // One that was taken on stores by the number of who did so.
  return (adopted_.load() >> slot & 1) != 0 ||
         !is_alive(member_, Writer(file_.writers[slot].load()));
}

bool Marks::begin_storing(uint64_t page) {
  uint64_t seen = word(page).load(std::memory_order_seq_cst);
  for (;;) {
    const uint64_t storing = seen >> kStoringShift;
    if ((storing != 0 && !is_stale(storing)) || (seen & kWriters) == 0) return false;
    const uint64_t ours = (seen & kWriters) | uint64_t{slot_ + 1} << kStoringShift;
    if (word(page).compare_exchange_weak(seen, ours, std::memory_order_seq_cst)) return true;
  }
}

bool Marks::end_storing(uint64_t page, uint64_t clean_bits) {
  uint64_t seen = word(page).load(std::memory_order_seq_cst);
  for (;;) {
    // A mark that was still being made when the group was freed: its thread makes it again.
    if (seen >> kStoringShift != slot_ + 1) return false;
    const uint64_t after = seen & kWriters & ~clean_bits;
    if (!word(page).compare_exchange_weak(seen, after, std::memory_order_seq_cst)) continue;
    if (after == 0 && (seen & kWriters) != 0) lower(member_.board().written_pages, uint64_t{1});
    return (seen & clean_bits & own_bit()) != 0;
  }
}

bool Marks::hand_over(uint64_t page) {
  uint64_t seen = word(page).load(std::memory_order_seq_cst);
  // Who is storing it may have read it before this process wrote it last, and then drops its mark.
  while (seen >> kStoringShift == 0 && (seen & own_bit()) != 0 && (seen & ~own_bits()) != 0)
    if (word(page).compare_exchange_weak(seen, seen & ~own_bit(), std::memory_order_seq_cst))
      return true;
  return false;
}

bool Marks::next_group(uint64_t from, uint64_t* first, uint64_t* end) const {
  const auto base = static_cast<off_t>(file_.first_page * sizeof(uint64_t));
  const auto limit = base + static_cast<off_t>(pages_ * sizeof(uint64_t));
  const off_t begin = base + static_cast<off_t>(from * sizeof(uint64_t));
  if (begin >= limit) return false;
  const off_t data = ::lseek(member_.marks_fd(), begin, SEEK_DATA);
  if (data < 0 || data >= limit) return false;
  const off_t hole = std::min(::lseek(member_.marks_fd(), data, SEEK_HOLE), limit);
  *first = static_cast<uint64_t>(data - base) / sizeof(uint64_t);
  *end = hole <= data ? *first + 1 : static_cast<uint64_t>(hole - base) / sizeof(uint64_t);
  return true;
}

bool Marks::adopt() {
  uint64_t found = 0;
  for (uint32_t slot = 0; slot < kWritersMax; ++slot) {
    uint64_t bits = file_.writers[slot].load();
    const Writer writer(bits);
    if (!writer.is_any() || writer == member_.as_writer() || is_alive(member_, writer)) continue;
    if (!file_.writers[slot].compare_exchange_strong(bits, member_.as_writer().bits())) continue;
    file_.writer_fds[slot].store(0);
    found |= uint64_t{1} << slot;
  }
  if (found != 0) clear_storing(found);
  return (adopted_.fetch_or(found) | found) != 0;
}

// What they were storing nobody stores now: also to those who see the writer that has taken them
// on.
void Marks::clear_storing(uint64_t slots) {
  any_word([slots](os::Word<uint64_t>& word) {
    uint64_t seen = word.load(std::memory_order_seq_cst);
    while (seen >> kStoringShift != 0 && (slots >> ((seen >> kStoringShift) - 1) & 1) != 0 &&
           !word.compare_exchange_weak(seen, seen & kWriters)) {
    }
    return false;
  });
}

uint32_t Marks::writers() const { return writers_of(file_); }

uint32_t Marks::writers_of_all(const Board& board) {
  uint32_t count = 0;
  for (const FileRecord& file : board.files)
    if (file.state.load() != FileState::kFree && file.is_written.load() != 0)
      count += writers_of(file);
  return count;
}

uint64_t Marks::begin_to_forget() {
  const uint64_t adopted = adopted_.load();
  const bool has_some_left = any_word([adopted](os::Word<uint64_t>& word) {
    uint64_t seen = word.load(std::memory_order_seq_cst);
    if ((seen & adopted) != 0) return true;
    // They were storing what others wrote: whoever gets their number must not seem to.
    for (uint64_t by = seen >> kStoringShift; by != 0 && (adopted >> (by - 1) & 1) != 0;
         by = seen >> kStoringShift)
      if (word.compare_exchange_strong(seen, seen & kWriters)) break;
    return false;
  });
  if (has_some_left) return 0;
  adopted_.fetch_and(~adopted);
  return adopted;
}

void Marks::forget(uint64_t adopted) {
  for (uint32_t slot = 0; slot < kWritersMax; ++slot)
    if ((adopted >> slot & 1) != 0) file_.writers[slot].store(0);
}

void Marks::drop_all() {
  any_word([this](os::Word<uint64_t>& word) {
    if ((word.fetch_and(~own_bit(), std::memory_order_seq_cst) & kWriters) == own_bit())
      lower(member_.board().written_pages, uint64_t{1});
    return false;
  });
}

bool Marks::has_writer(const Member& member, const FileRecord& file) {
  return std::any_of(file.writers.begin(), file.writers.end(),
                     [&](const auto& bits) { return is_alive(member, Writer(bits.load())); });
}

bool Marks::has_other_writer(const Member& member, const FileRecord& file) {
  return std::any_of(file.writers.begin(), file.writers.end(), [&](const auto& bits) {
    const Writer writer(bits.load());
    return writer != member.as_writer() && is_alive(member, writer);
  });
}

bool Marks::has_inheriting(const Member& member, const FileRecord& file) {
  for (uint32_t slot = 0; slot < kWritersMax; ++slot)
    if (file.writer_fds[slot].load() == kInheriting &&
        is_alive(member, Writer(file.writers[slot].load())))
      return true;
  return false;
}

bool Marks::is_anybodys(const FileRecord& file) { return writers_of(file) != 0; }

bool Marks::leave_to_others(bool must) {
  OC_CHECK(!is_closed_);
  const bool has_heir = must || has_other_writer(member_, file_) ||
                        Heirs::has_staying(member_, file_, member_.index());
  leaves_marks_ = leaves_marks_ || (has_heir && has_any_own());
  return leaves_marks_;
}

bool Marks::has_any_own() const {
  return any_word(
      [this](const os::Word<uint64_t>& word) { return (word.load() & own_bit()) != 0; });
}

bool Marks::has_any_mine() const {
  return any_word(
      [this](const os::Word<uint64_t>& word) { return (word.load() & own_bits()) != 0; });
}

bool Marks::is_any_left() const {
  return any_word([this](const os::Word<uint64_t>& word) {
    const uint64_t seen = word.load(std::memory_order_seq_cst), storing = seen >> kStoringShift;
    return (seen & kWriters) != 0 || (storing != 0 && !is_stale(storing));
  });
}

uint64_t Marks::glance(const Member& member, uint64_t frame_page) {
  uint64_t word = 0;
  if (os::read_all(member.marks_fd(), frame_page * sizeof word,
                   std::as_writable_bytes(std::span(&word, 1))) != 0)
    return kWriters;  // it stays
  return word;
}

uint64_t Marks::Glances::word(uint64_t frame_page) {
  if (const uint64_t first = base::round_down(frame_page, kGroup); first != first_) {
    first_ = first;
    words_.fill(0);
    if (os::read_all(member_.marks_fd(), first * sizeof(uint64_t),
                     std::as_writable_bytes(std::span(words_))) != 0)
      words_.fill(kWriters);  // they stay
  }
  return words_[frame_page - first_];
}

uint64_t Marks::count_in(const Member& member, uint64_t first_frame_page, uint64_t pages) {
  uint64_t count = 0;
  std::array<uint64_t, kGroup> words{};
  const uint64_t end = first_frame_page + pages;
  for (uint64_t group = base::round_down(first_frame_page, kGroup); group < end;) {
    const off_t data = ::lseek(member.marks_fd(), static_cast<off_t>(group * 8), SEEK_DATA);
    if (data < 0) break;
    group = base::round_down(static_cast<uint64_t>(data) / sizeof(uint64_t), kGroup);
    if (group >= end || os::read_all(member.marks_fd(), group * sizeof(uint64_t),
                                     std::as_writable_bytes(std::span(words))) != 0)
      break;
    for (uint64_t i = 0; i < kGroup; ++i)
      if (group + i >= first_frame_page && group + i < end && (words[i] & kWriters) != 0) ++count;
    group += kGroup;
  }
  return count;
}

bool Marks::is_any_in_group(const Member& member, uint64_t first_frame_page) {
  std::array<uint64_t, kGroup> words{};
  if (os::read_all(member.marks_fd(), first_frame_page * sizeof(uint64_t),
                   std::as_writable_bytes(std::span(words))) != 0)
    return true;
  return std::any_of(words.begin(), words.end(), [](uint64_t word) { return word != 0; });
}

}  // namespace outcore::buffer
