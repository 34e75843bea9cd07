// ReturnTimes: how soon pages are touched again, by what they did before. What is in memory is
// touched unseen; but pages alike that are out are seen when they come back, and these show how
// likely the others are touched at each age (the life table of Kaplan and Meier, JASA 1958). Ages
// are counted in fills. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

namespace outcore::recording {

class ReturnTimes {
 public:
  // Of ages: half an octave each.
  static constexpr size_t kBuckets = 80;
  // Of pages: by how long it took them to come back the last time. Of the first it is not known.
  static constexpr uint32_t kNew = 0, kGuess = 1, kFirstKnown = 2,
                            kClasses = kFirstKnown + kBuckets;
  static constexpr double kNever = 1e300;

  static size_t bucket_of(double age);
  static uint32_t class_after(double age) {
    return kFirstKnown + static_cast<uint32_t>(bucket_of(age));
  }

  // REQUIRES of all: page_class < kClasses, 0 <= age.
  void note_return(uint32_t page_class, double age);
  void note_gone(uint32_t page_class, double age);  // it is not waited for any more

  // Takes over what was noted: begin(), of each page that is out still_out(), end().
  void begin();
  void still_out(uint32_t page_class, double age);
  void end();

  // An age at which such a page might be touched, of those that are likely; kNever.
  double draw(uint32_t page_class, std::mt19937_64& random) const;

 private:
  // Pages that are still out count for as long as they are, but not fully: among them are more that
  // nobody will touch again than among those in memory. So much was best for five workloads, of
  // which two have such pages (docs/internals/decisions/0046-other-budgets.md).
  static constexpr double kOutWeight = 0.6;
  // Of a class, more are not counted: then what is old counts half.
  static constexpr double kCountMax = 1 << 14;
  using Row = std::array<double, kBuckets>;
  struct Class {
    Row returned{}, ended{};  // how many at this age; `ended` has those that returned, too
    Row odds{};               // of being touched at this age, if not before
    bool is_known = false;
    double count = 0;
  };
  void note_end(Class* of, double age);

  std::array<Class, kClasses> classes_{};
  std::array<Row, kClasses> out_{};
};

}  // namespace outcore::recording
