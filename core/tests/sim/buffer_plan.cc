#include "core/tests/sim/buffer_plan.h"

namespace outcore::sim {

BufferPlan BufferPlan::make(uint64_t seed, Kind kind) {
  Random random(seed ^ 0x2545F4914F6CDD1Dull);
  BufferPlan plan;
  plan.seed = seed;
  plan.kind = kind;
  plan.room_pages = random.between(40, 120);
  constexpr uint64_t kPages[] = {30, 100, 200, 300, 700, 1200};
  plan.file_pages = random.one_of(kPages) + random.below(20);
  constexpr uint64_t kEvery[] = {1, 4, 20, 100};
  plan.interleave_every = random.one_of(kEvery);
  plan.processes = static_cast<unsigned>(random.between(2, 4));
  plan.lives = plan.processes + static_cast<unsigned>(random.below(5));
  plan.threads_max = static_cast<unsigned>(random.between(1, 3));
  plan.ops = random.between(100, 800) / plan.lives;
  constexpr uint64_t kReaders[] = {0, 200, 500};
  plan.readers = kind == Kind::kRead ? 1000 : random.one_of(kReaders);
  if (random.chance(850)) {
    constexpr uint64_t kBlows[] = {20'000, 200'000, 2'000'000};
    plan.blow_ns_max = random.one_of(kBlows);
    constexpr uint64_t kKills[] = {1000, 1000, 700, 300};
    plan.kills = random.one_of(kKills);
    plan.has_long_stops = random.chance(400);
  } else if (random.chance(500)) {
    // Whoever stores for a killed process, and cannot, may lose what that one wrote.
    constexpr uint64_t kRates[] = {0, 5, 50};
    plan.behaviour = {random.one_of(kRates), random.one_of(kRates)};
  }
  plan.wait_ns_max = plan.has_failures() ? 50'000'000 : 30'000'000'000;
  return plan;
}

std::string BufferPlan::describe() const {
  const auto text = [](uint64_t number) { return std::to_string(number); };
  return std::string(kind == Kind::kRead ? "read" : "written") + " file of " + text(file_pages) +
         " pages, room for " + text(room_pages) + ", a point in " + text(interleave_every) +
         " words, " + text(processes) + " processes at a time, " + text(lives) +
         " in all, threads " + text(threads_max) + ", ops " + text(ops) + ", readers " +
         text(readers) + ", kills " + text(kills) + (has_long_stops ? ", long stops" : "") +
         ", a blow every " + text(blow_ns_max) + " ns, failures of reads " +
         text(behaviour.read_failures) + ", of writes " + text(behaviour.write_failures);
}

}  // namespace outcore::sim
