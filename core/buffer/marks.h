// Marks: which pages of a file in a buffer were written since they were stored, and by whom.
//
// Each page has a word: a bit for each process that may have written it, and the number of the
// process that is storing it now. A process sets its bit before it can write. The bit is cleared
// once the process cannot write any more without setting it again, and either its bytes are in the
// file, or another process has marked the page, too, and will store it. So a page without bits is
// as in the file, and may leave. What a killed process wrote is in memory and marked, and another
// one stores it (adopt()).
//
// The words lie in a sparse memfd of their own: where no page was ever marked there is no memory,
// and reading by a call allocates none. Any thread; the fault path, except for open and close.
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
  // Opens the marks to store pages that ended members wrote. If no writer's slot is free it reuses
  // one of theirs; their pages then count as this process's. Otherwise as open().
  static Result<std::unique_ptr<Marks>> open_to_inherit(Member& member, FileRecord& file);
  ~Marks();  // REQUIRES: it was closed
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  // The process stops being a writer; pages that it had adopted stay marked, for the next to adopt.
  // With `may_end` the file stops being a written one if this was its last writer: returns whether
  // it was. REQUIRES, with `may_end`: the lock of files, and no process is reading a page from the
  // file that was stored since.
  bool close(bool may_end);

  // Whether the words of these pages have memory. May be out of date. REQUIRES: as set().
  bool has_memory(uint64_t first, uint64_t end) const;
  // Marks the pages: this process may write them. *newly: how many it had not marked before. 0;
  // -ETIMEDOUT: a stopped member may be punching some of them. REQUIRES: pages of the file, at most
  // kTogetherMax.
  int set(uint64_t first, uint64_t count, uint64_t* newly);
  bool is_own(uint64_t page) const { return (word(page).load() & own_bit()) != 0; }
  // Whether this process, or one that it has adopted, marked it. Touches the word: see InHand.
  bool is_mine(uint64_t page) const { return (word(page).load() & own_bits()) != 0; }

  // Only one process stores a page at a time. False: another does, or it is not marked any more.
  // Touches the word: see InHand.
  bool begin_storing(uint64_t page);
  // Clears `clean_bits`: own_bits() as of before the page's bytes were read. Their processes cannot
  // write the page any more without marking it again. Returns whether this process's bit was set.
  bool end_storing(uint64_t page, uint64_t clean_bits);
  // Between begin_storing() and end_storing(): false if the group's words were freed meanwhile,
  // because no page of it was marked.
  bool is_storing(uint64_t page) const { return word(page).load() >> kStoringShift == slot_ + 1; }
  // Whether this process has marked it, and so has another one that it has not adopted.
  bool is_shared(uint64_t page) const {
    const uint64_t bits = word(page).load() & kWriters;
    return (bits & own_bit()) != 0 && (bits & ~own_bits()) != 0;
  }
  // Clears this process's bit: the others that marked the page store it later. False: there are
  // none, or a process is storing it now. REQUIRES: this process cannot write the page without
  // marking it again.
  bool hand_over(uint64_t page);
  // This process's bit, and those of the processes that it has adopted.
  uint64_t own_bits() const { return own_bit() | adopted_.load(); }

  // The first page of the file from `from` on whose word has memory, and the page at which that
  // memory ends. False: there is none.
  bool next_group(uint64_t from, uint64_t* first, uint64_t* end) const;

  // Adopts the processes that wrote the file and have ended: their bits count as this one's until
  // no page has them any more (begin_to_forget, forget). Returns whether any is adopted now.
  bool adopt();
  // If no page has adopted bits any more, they stop being this process's, and are returned; else 0.
  // forget() then frees their slots for new writers, once no thread uses own_bits() of before.
  uint64_t begin_to_forget();
  void forget(uint64_t adopted);

  uint32_t slot() const { return slot_; }  // of the writers
  uint32_t writers() const;                // how many processes write the file
  // The same for all files together: a process counts once for each file that it writes.
  static uint32_t writers_of_all(const Board& board);
  // Whether a living member writes the file; whether one other than this does.
  static bool has_writer(const Member& member, const FileRecord& file);
  static bool has_other_writer(const Member& member, const FileRecord& file);
  // Whether a living member is there only to store what ended ones wrote.
  static bool has_inheriting(const Member& member, const FileRecord& file);
  // Whether any process writes it, or has written bytes that are not stored yet.
  static bool is_anybodys(const FileRecord& file);

  // Clears this process's marks, stored or not; not those of adopted ones.
  void drop_all();
  // From close() on, others store what this process could not, as if it had been killed. False: it
  // has no mark, or no other living member writes the file or could store it. `must`: even if no
  // such member is seen.
  bool leave_to_others(bool must);
  bool has_any_own() const;  // looks at all pages
  // Whether any page has a mark of this process, its own or adopted; of any process, or is just
  // being stored. Both look at all pages.
  bool has_any_mine() const;
  bool is_any_left() const;
  // Tells it that no page has this process's mark any more.
  void note_all_stored() { leaves_marks_ = false; }

  // Counts up to two pages of words against the limit for as long as it exists. Words may be
  // touched only while one exists, because a touch allocates memory if the word has lost it since
  // it was looked at. REQUIRES: made before that look. Any thread; the fault path.
  class InHand {
   public:
    struct Acquired {};
    explicit InHand(Member& member) : member_(member) {
      member_.record().reserved_pages.fetch_add(kPagesMost, std::memory_order_seq_cst);
    }
    // The caller has acquired kPagesMost pages (Room::acquire); the destructor releases them.
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

  // Copies of words, a group at a time, to look at page after page: reading allocates no memory.
  // Marked pages' words may be touched then, while the InHand exists. One thread.
  class Look {
   public:
    Look(const Marks& marks, const InHand&) : marks_(marks) {}
    bool is_mine(uint64_t page) { return (word(page) & marks_.own_bits()) != 0; }
    bool is_any(uint64_t page) { return (word(page) & kWriters) != 0; }
    void forget() { first_ = kNone; }  // the next word is read anew

   private:
    static constexpr uint64_t kNone = ~uint64_t{0};
    uint64_t word(uint64_t page);
    const Marks& marks_;
    uint64_t first_ = kNone;
    std::array<uint64_t, kGroup> words_{};
  };

  // The word of a page of the buffer, read by a system call; 0 where there is no memory.
  static uint64_t glance(const Member& member, uint64_t frame_page);
  // The same for page after page, with one call for pages of one group that follow each other. An
  // answer may be as old as the last forget(). One thread.
  class Glances {
   public:
    explicit Glances(const Member& member) : member_(member) {}
    uint64_t word(uint64_t frame_page);
    void forget() { first_ = kNone; }

   private:
    static constexpr uint64_t kNone = ~uint64_t{0};
    const Member& member_;
    uint64_t first_ = kNone;
    std::array<uint64_t, kGroup> words_;
  };
  // How many of these pages of the buffer are marked, by whichever process; by system calls.
  static uint64_t count_in(const Member& member, uint64_t first_frame_page, uint64_t pages);
  static bool is_any_in_group(const Member& member, uint64_t first_frame_page);

 private:
  static constexpr unsigned kStoringShift = kWritersMax;
  Marks(Member& member, FileRecord& file, uint32_t slot)
      : member_(member), file_(file), pages_(file.pages), slot_(slot) {}
  os::Word<uint64_t>& word(uint64_t page) const;
  // Calls is_it(word) for each word that is not 0 until one returns true; returns whether one did.
  // Words that are 0 are not touched: a touch would allocate memory for them.
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
  // Whether the process that was storing the page has ended.
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
