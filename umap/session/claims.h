// Claims: what regions of umap() have for themselves: addresses, and the pages of the program's
// stores that they write. Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>

namespace outcore::umapped {

class Claims {
  struct Range {
    const void* space;
    uint64_t from, to;
  };

 public:
  static constexpr const void* kAddresses = nullptr;  // the space of addresses, not of a store

  // A claim, until it is destroyed.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&& other) noexcept;
    ~Claim() { end(); }
    explicit operator bool() const { return of_ != nullptr; }

   private:
    friend class Claims;
    Claim(Claims* of, std::list<Range>::iterator range) : of_(of), range_(range) {}
    void end();
    Claims* of_ = nullptr;  // nullptr: empty
    std::list<Range>::iterator range_;
  };

  // Empty if a part of [from, to) is claimed already. REQUIRES, here and below: from < to.
  Claim take(const void* space, uint64_t from, uint64_t to);
  // The same for a range that the kernel has given to the caller: who had it before is about to
  // give up its claim.
  Claim take_given(const void* space, uint64_t from, uint64_t to);

 private:
  Claim add(const Range& range);

  std::mutex lock_;
  std::list<Range> ranges_;
};

}  // namespace outcore::umapped
