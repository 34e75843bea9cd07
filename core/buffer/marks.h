// Marks: which pages of a file in a buffer were written since they were stored, and by whom.
//
// Of each page there is a word: a bit for each process that may have written it, and who is just
// storing it. A bit is set before its process can write, and cleared when what was written is in
// the file, or others have marked the page as well and store it later, and the process cannot write
// any more without setting it again. So a page without bits is as the file is, and may leave; and
// what a process wrote that was killed is in memory, marked, and is stored by others (adopt()).
//
// The words lie in a memory file of their own, sparse: where no page was ever marked there is no
// memory, and reading by a call makes none. Any thread; the fault path, but for open and close.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "core/buffer/member.h"
#include "core/os/word.h"
#include "outcore/result.h"

namespace outcore::buffer {

class Marks {
 public:
  static constexpr uint64_t kGroup = kPage / sizeof(uint64_t);  // pages whose words share a page
  static constexpr uint64_t kTogetherMax = 64;                  // that are marked by one call
  static constexpr uint64_t kWriters = (uint64_t{1} << kWritersMax) - 1;

  // This process becomes a writer of the file, which it has open as `fd`. Errors: EUSERS (56
  // processes write it), and those of mmap. REQUIRES: the lock of files; the member has the file.
  static Result<std::unique_ptr<Marks>> open(Member& member, FileRecord& file, int fd);
  // To store what those wrote who have ended: if there is no place left, in that of one of them,
  // whose pages count as this one's. Otherwise as open().
  static Result<std::unique_ptr<Marks>> open_to_inherit(Member& member, FileRecord& file);
  ~Marks();  // REQUIRES: it was closed
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  // It is no writer any more; what it had taken on is for the next. With `may_end` (REQUIRES: the
  // lock of files, and nobody reads what was stored before) the file is not written any more if
  // nobody else writes it: returns whether that is so.
  bool close(bool may_end);

  // Whether the words of these pages have memory. A guess a moment later. REQUIRES: as set().
  bool has_memory(uint64_t first, uint64_t end) const;
  // Marks the pages: this process may write them. *newly: how many were not marked by it. 0;
  // -ETIMEDOUT: a member stands still that might take some away. REQUIRES: pages of the file,
  // kTogetherMax at most.
  int set(uint64_t first, uint64_t count, uint64_t* newly);
  bool is_own(uint64_t page) const { return (word(page).load() & own_bit()) != 0; }
  // Or by one that was taken on. REQUIRES: as is_any().
  bool is_mine(uint64_t page) const { return (word(page).load() & own_bits()) != 0; }

  // Only one process stores a page at a time. False: another does, or it is not marked any more.
  // REQUIRES: as is_any().
  bool begin_storing(uint64_t page);
  // `clean_bits`: what was written under these, as own_bits() had them before it was read, is
  // stored, and cannot be written any more: they go. Returns whether this process's was among them.
  bool end_storing(uint64_t page, uint64_t clean_bits);
  // Between the two: false if the group was freed meanwhile, as nobody had marked it yet.
  bool is_storing(uint64_t page) const { return word(page).load() >> kStoringShift == slot_ + 1; }
  // Whether this process has marked it, and others have as well; not those that it has taken on.
  bool is_shared(uint64_t page) const {
    const uint64_t bits = word(page).load() & kWriters;
    return (bits & own_bit()) != 0 && (bits & ~own_bits()) != 0;
  }
  // Leaves the page to those others, who store it later. False: there are none, or somebody is just
  // storing it. REQUIRES: this process cannot write it without marking it again.
  bool hand_over(uint64_t page);
  // This process's bits, with those that were taken on until now.
  uint64_t own_bits() const { return own_bit() | adopted_.load(); }

  // The first page at or after this one whose group has memory, and the end of that memory; of
  // `pages` of the file. False: there is none.
  bool next_group(uint64_t from, uint64_t* first, uint64_t* end) const;

  // Takes on what processes wrote that have ended: their bits count as this one's, until no page
  // has them any more (begin_to_forget, forget). Whether it has any.
  bool adopt();
  // Unless some page still has such bits: from now on they are not this process's. Then, when no
  // thread uses them any more (own_bits()), those that this returned can be others'.
  uint64_t begin_to_forget();
  void forget(uint64_t adopted);

  uint32_t writers() const;  // how many there are
  // The same, of all files together: a process counts for each file that it writes.
  static uint32_t writers_of_all(const Board& board);
  // Whether a member that lives writes the file; another one than this.
  static bool has_writer(const Member& member, const FileRecord& file);
  static bool has_other_writer(const Member& member, const FileRecord& file);
  // One that is only storing what others wrote, who have ended.
  static bool has_inheriting(const Member& member, const FileRecord& file);
  // Whether anybody writes it, or has written what nobody has stored yet.
  static bool is_anybodys(const FileRecord& file);

  // This process's marks go, stored or not; not those that it has taken on.
  void drop_all();
  // What it could not store is another's to store from close() on, as if it had been killed. False:
  // there is no mark of its own, or nobody else that lives writes the file, or could store it.
  // `must`: also where nobody else is seen.
  bool leave_to_others(bool must);
  bool has_any_own() const;  // looks at all pages
  // No page has a mark of its own any more.
  void note_all_stored() { leaves_marks_ = false; }

  // Words are touched while one of these exists, which counts a page of them, or two, as under way:
  // to touch one gives it memory, if it has lost it since it was looked at. REQUIRES: made before
  // that look. Any thread; the fault path.
  class InHand {
   public:
    struct Acquired {};
    explicit InHand(Member& member) : member_(member) {
      member_.record().reserved_pages.fetch_add(kPagesMost, std::memory_order_seq_cst);
    }
    // The caller has acquired as many (Room::acquire), which are released with this.
    InHand(Member& member, Acquired) : member_(member) {}
    ~InHand() {
      member_.board().filled_pages.fetch_add(kPagesMost, std::memory_order_seq_cst);
      lower(member_.record().reserved_pages, kPagesMost);
    }
    InHand(const InHand&) = delete;
    InHand& operator=(const InHand&) = delete;
    static constexpr uint64_t kPagesMost = 2;

   private:
    Member& member_;
  };

  // To look at page after page: copies of their words, a group at a time, which gives none memory.
  // Those that are marked may be touched then, while the InHand exists. One thread.
  class Look {
   public:
    Look(const Marks& marks, const InHand&) : marks_(marks) {}
    bool is_mine(uint64_t page) { return (word(page) & marks_.own_bits()) != 0; }
    bool is_any(uint64_t page) { return (word(page) & kWriters) != 0; }
    void forget() { first_ = kNone; }  // they may have changed

   private:
    static constexpr uint64_t kNone = ~uint64_t{0};
    uint64_t word(uint64_t page);
    const Marks& marks_;
    uint64_t first_ = kNone;
    std::array<uint64_t, kGroup> words_{};
  };

  // The word of a page of the buffer, by a call; 0 where there is no memory.
  static uint64_t glance(const Member& member, uint64_t frame_page);
  // The same for page after page, in one call as long as they are of the same group: what it says
  // may be as old as itself. One thread.
  class Glances {
   public:
    explicit Glances(const Member& member) : member_(member) {}
    uint64_t word(uint64_t frame_page);
    void forget() { first_ = kNone; }  // what it says is no older than this

   private:
    static constexpr uint64_t kNone = ~uint64_t{0};
    const Member& member_;
    uint64_t first_ = kNone;
    std::array<uint64_t, kGroup> words_;
  };
  // How many of these pages of the buffer anybody has marked; by calls.
  static uint64_t count_in(const Member& member, uint64_t first_frame_page, uint64_t pages);
  static bool is_any_in_group(const Member& member, uint64_t first_frame_page);

 private:
  static constexpr unsigned kStoringShift = kWritersMax;
  Marks(Member& member, FileRecord& file, uint32_t slot)
      : member_(member), file_(file), pages_(file.pages), slot_(slot) {}
  os::Word<uint64_t>& word(uint64_t page) const;
  // Calls is_it(word) for each that is not 0, until one says yes; returns whether one did. Others
  // are not touched: they may have lost their memory meanwhile, and would get some.
  template <typename IsIt>
  bool any_word(const IsIt& is_it) const {
    const InHand in_hand(member_);
    std::array<uint64_t, kGroup> seen{};
    uint64_t first = 0, end = 0;
    for (uint64_t from = 0; next_group(from, &first, &end);) {
      from = std::min({end, pages_, base::round_down(first, kGroup) + kGroup});
      const bool is_read = read_words(first, std::span(seen).first(from - first));
      for (uint64_t page = first; page < from; ++page)
        if ((!is_read || seen[page - first] != 0) && is_it(word(page))) return true;
    }
    return false;
  }
  bool read_words(uint64_t first, std::span<uint64_t> into) const;
  uint64_t mapped_bytes() const { return base::round_up(pages_ * sizeof(uint64_t), kPage); }
  uint64_t own_bit() const { return uint64_t{1} << slot_; }
  // Who stores it has ended.
  bool is_stale(uint64_t storing) const;
  Status map();
  void clear_storing(uint64_t slots);  // bits

  Member& member_;
  FileRecord& file_;
  const uint64_t pages_;
  const uint32_t slot_;
  os::Word<uint64_t> adopted_{0};  // bits
  os::Word<uint64_t>* words_ = nullptr;
  bool is_closed_ = false, leaves_marks_ = false;
};

}  // namespace outcore::buffer
