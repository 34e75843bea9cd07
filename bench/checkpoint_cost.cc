// checkpoint: what checkpoints cost a program: bytes, pauses, its own speed; and the store that
// holds ten of them beside a plain file.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "bench/anonymous_memory.h"
#include "bench/checkpoint_pages.h"
#include "bench/checkpoint_place.h"
#include "bench/checkpoints.h"
#include "bench/clock.h"
#include "bench/random.h"
#include "cli/text.h"
#include "outcore/checkpoint.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/runtime.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kPage = CheckpointPages::kPageBytes, kMiB = 1 << 20, kHeld = 10;

// What this process gave the disk. 0 where the kernel does not count.
uint64_t disk_bytes() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value)
    if (key == "write_bytes:") return value;
  return 0;
}

// What a program has that is in its checkpoints: a region, and ordinary memory, which may be none.
struct Program {
  Program(Region mapped, std::span<std::byte> own, uint64_t seed)
      : region(std::move(mapped)),
        pages({region.data(), region.size_bytes()}, seed),
        memory(own, mix(seed)) {}

  std::vector<CheckpointPart> parts() const {
    std::vector<CheckpointPart> all{region};
    if (memory.count() != 0)
      all.emplace_back(CheckpointPlace::kMemory, memory.bytes().data(), memory.bytes().size());
    return all;
  }

  Region region;
  CheckpointPages pages, memory;
};

Result<Region> map(Runtime& runtime, const std::string& uri, uint64_t size_bytes,
                   Access access = Access::kReadWrite) {
  MapOptions options;
  options.access = access;
  options.size_bytes = size_bytes;
  options.may_create = access == Access::kReadWrite;
  return runtime.map(uri, options);
}

Result<Runtime> start(uint64_t budget_bytes) {
  RuntimeOptions options;
  options.budget_bytes = budget_bytes;
  return Runtime::start(options);
}

uint64_t round_up(uint64_t bytes) { return (bytes + kMiB - 1) / kMiB * kMiB; }

class Cost {
 public:
  Cost(const CheckpointOptions& options, CheckpointPlace place, const SeeFigure& see)
      : options_(options),
        place_(std::move(place)),
        size_bytes_(round_up(options.size_bytes)),
        memory_bytes_(round_up(options.memory_bytes)),
        budget_bytes_(options.budget_bytes != 0 ? options.budget_bytes
                                                : size_bytes_ / 4 * 5 + 64 * kMiB + memory_bytes_),
        see_(see) {}

  // In one child: the checkpoints, and the program beside them.
  Status run_program() {
    auto runtime = start(budget_bytes_);
    if (!runtime) return runtime.error();
    auto region = map(runtime.value(), place_.pages(), size_bytes_);
    if (!region) return region.error();
    const AnonymousMemory memory(nullptr, memory_bytes_);  // of no bytes: there is none
    if (memory.bytes().size() != memory_bytes_)
      return cli::failure(ENOMEM, "make the memory part of the program",
                          "use a smaller --memory-part");
    Program program(std::move(region).value(), memory.bytes(), options_.seed);
    if (Status s = first(program); !s) return s;
    if (Status s = later(program); !s) return s;
    if (Status s = beside(program, false, 0.7); !s) return s;
    if (Status s = beside(program, true, 0); !s) return s;
    for (uint64_t i = 0; i < kHeld; ++i) {
      change(program, i + 10);
      const auto made = checkpoint("held " + std::to_string(i), program.parts());
      if (!made) return made.error();
    }
    return verify(runtime.value(), program, "held " + std::to_string(kHeld - 1));
  }

  // In others, one each, so that none has the memory of the one before.
  Status write_plain() {
    auto runtime = start(budget_bytes_);
    if (!runtime) return runtime.error();
    auto region = map(runtime.value(), place_.plain(), size_bytes_);
    if (!region) return region.error();
    CheckpointPages({region->data(), size_bytes_}, options_.seed).fill();
    return region->sync();
  }
  Status read_randomly(const std::string& uri, double* rate) const {
    return randomly(uri, false, rate);
  }
  Status write_randomly(const std::string& uri, double* rate) const {
    return randomly(uri, true, rate);
  }

 private:
  Status first(Program& program) {
    program.pages.fill();
    program.memory.fill();
    const auto made = checkpoint("first", program.parts());
    if (!made) return made.error();
    const double seconds = static_cast<double>(made->seconds_ns) * 1e-9;
    const auto plain = place_.write_plainly(size_bytes_ + memory_bytes_);
    if (!plain) return plain.error();
    see_({options_.store.empty() ? "first checkpoint, of the device's sequential write"
                                 : "first checkpoint, of plain writes to an image",
          plain.value() / seconds, 0.8, false, "x",
          cli::format_bytes(size_bytes_ + memory_bytes_) + " in " + cli::format_seconds(seconds) +
              ", plainly in " + cli::format_seconds(plain.value())});
    return {};
  }

  uint64_t changed_of(const CheckpointPages& pages) const {
    const auto share = static_cast<uint64_t>(static_cast<double>(pages.count()) * options_.changed);
    return std::min(pages.count(), std::max<uint64_t>(share, options_.threads));
  }

  // Pages of the region, and the same share of those of the memory.
  uint64_t change(Program& program, uint64_t round) const {
    const uint64_t count = changed_of(program.pages), of_memory = changed_of(program.memory);
    program.pages.change(round, count);
    program.memory.change(round, of_memory);
    return count + of_memory;
  }

  Status later(Program& program) {
    const uint64_t count = change(program, 1);
    const uint64_t before = disk_bytes();
    const auto made = checkpoint("later", program.parts());
    if (!made) return made.error();
    const uint64_t written = disk_bytes() - before;
    const uint64_t most = count * kPage * 11 / 10 + count * 32 + kMiB;
    if (before != 0)
      see_({"bytes written after " + changed_text() + " changed",
            static_cast<double>(written) / 1e6, static_cast<double>(most) / 1e6, true, "MB",
            std::to_string(count) + " pages of 4 KiB"});
    pause("pause, nobody writes", made.value());
    return program.memory.count() == 0 ? Status() : cost_of_memory(program, made.value());
  }

  // What memory adds to the checkpoint `with` it: beside one of the region alone, after as many
  // changes, which does not stay.
  Status cost_of_memory(Program& program, const CheckpointReport& with) {
    change(program, 2);
    const auto without = checkpoint("without memory", {program.region});
    if (!without) return without.error();
    const auto text = [](uint64_t ns) {
      return cli::format_seconds(static_cast<double>(ns) * 1e-9);
    };
    const uint64_t count = changed_of(program.memory);
    see_({"bytes written of the memory part after " + changed_text() + " changed",
          static_cast<double>(with.copied_bytes) / 1e6, static_cast<double>(count * kPage) / 1e6,
          true, "MB",
          std::to_string(count) + " of its pages of 4 KiB; the checkpoint took " +
              text(with.seconds_ns) + ", without it " + text(without->seconds_ns) + "; the pause " +
              text(with.pause_ns) + ", without it " + text(without->pause_ns)});
    return remove_checkpoints(place_.pool(), {"without memory"});
  }

  std::string changed_text() const { return cli::format("%g %%", options_.changed * 100); }

  // Memory is copied, and compared with its copy, while threads are held: a millisecond a MiB.
  void pause(const std::string& name, const CheckpointReport& made) {
    see_({name, static_cast<double>(made.pause_ns) * 1e-6,
          20 + 0.004 * static_cast<double>(made.frozen_pages) +
              static_cast<double>(memory_bytes_) / kMiB,
          true, "ms",
          std::to_string(made.frozen_pages) + " pages were left in the last round, " +
              std::to_string(made.stopped_threads) + " threads held"});
  }

  static void rest(uint64_t ns) {
    const timespec pause{static_cast<time_t>(ns / 1'000'000'000),
                         static_cast<long>(ns % 1'000'000'000)};
    ::nanosleep(&pause, nullptr);
  }

  // Threads read pages at random, and after each write one of the first `hot`, and one of as large
  // a share of the memory, and count: in quiet, and while checkpoints are made. Where all pages are
  // hot, memory is written faster than any disk takes it: the program waits for the disk (asked 0).
  Status beside(Program& program, bool is_all_hot, double asked) {
    CheckpointPages &pages = program.pages, &memory = program.memory;
    const uint64_t hot = is_all_hot ? pages.count() : changed_of(pages);
    const uint64_t hot_of_memory = is_all_hot ? memory.count() : changed_of(memory);
    const auto quiet_between_ns = static_cast<uint64_t>(options_.seconds_between * 1e9);
    constexpr int kCheckpoints = 5;
    std::atomic<bool> is_over{false};
    std::vector<std::atomic<uint64_t>> counts(options_.threads);
    std::vector<std::thread> writers;
    for (unsigned t = 0; t < options_.threads; ++t)
      writers.emplace_back([&, t] {
        Random random(options_.seed + 77 + t);
        while (!is_over.load(std::memory_order_relaxed)) {
          // A little work on each page, as a program does.
          const auto* const words = reinterpret_cast<const uint64_t*>(
              pages.bytes().data() + random.below(pages.count()) * kPage);
          uint64_t sum = 0;
          for (uint64_t i = 1; i < kPage / 8; ++i) sum = mix(sum + words[i]);
          const uint64_t page = random.below(hot / options_.threads) * options_.threads + t;
          pages.word(page).store(sum, std::memory_order_relaxed);
          if (hot_of_memory != 0)
            memory.word(random.below(hot_of_memory)).store(sum, std::memory_order_relaxed);
          counts[t].fetch_add(1, std::memory_order_relaxed);
        }
      });
    const auto counted = [&] {
      uint64_t all = 0;
      for (const auto& one : counts) all += one.load();
      return all;
    };
    rest(quiet_between_ns / 4);
    uint64_t quiet_count = 0, quiet_ns = 0, busy_count = 0, busy_ns = 0;
    Status failed;
    CheckpointReport longest;
    for (int i = 0; i < kCheckpoints && failed.ok(); ++i) {
      uint64_t before = counted(), start_ns = now_ns();
      rest(quiet_between_ns);
      quiet_count += counted() - before;
      quiet_ns += now_ns() - start_ns;
      before = counted();
      start_ns = now_ns();
      const auto made = checkpoint("beside", program.parts());
      busy_count += counted() - before;
      busy_ns += now_ns() - start_ns;
      failed = made.status();
      // Of five that hold everything few disks have the space.
      if (failed.ok()) failed = remove_checkpoints(place_.pool(), {"beside"});
      if (made && made->pause_ns > longest.pause_ns) longest = made.value();
    }
    is_over = true;
    for (std::thread& writer : writers) writer.join();
    if (!failed.ok()) return failed;
    pages.note_words();
    memory.note_words();
    const std::string what = is_all_hot ? "every page" : changed_text() + " of the pages";
    const std::string who = options_.threads == 1
                                ? "a thread writes "
                                : std::to_string(options_.threads) + " threads write ";
    pause("longest pause, " + who + what, longest);
    const double quiet = static_cast<double>(quiet_count) / static_cast<double>(quiet_ns);
    const double busy = static_cast<double>(busy_count) / static_cast<double>(busy_ns);
    see_({"speed beside a checkpoint, " + who + what, busy / quiet, asked, false, "x",
          std::to_string(kCheckpoints) + " checkpoints of " +
              cli::format_seconds(static_cast<double>(busy_ns) * 1e-9 / kCheckpoints)});
    return {};
  }

  // The region as the checkpoint has it. With memory, which a restart alone brings back: both, as
  // they are after one.
  Status verify(Runtime& runtime, Program& program, const std::string& name) {
    const bool has_memory = program.memory.count() != 0;
    if (has_memory)
      if (Status s = go_back(program, name); !s) return s;
    const Result<std::string> uri = has_memory ? place_.pages() : place_.at(name);
    if (!uri) return uri.error();
    const auto held = map(runtime, uri.value(), 0, Access::kReadOnly);
    if (!held) return held.error();
    return program.pages.check({held->data(), held->size_bytes()}, held->uri());
  }

  // As the program that comes next: nothing is mapped, and memory is empty. What was written to the
  // region since the checkpoint must go.
  Status go_back(Program& program, const std::string& name) {
    for (uint64_t at = 0; at < size_bytes_; at += size_bytes_ / 16 / kPage * kPage + kPage)
      std::memset(program.region.data() + at, 0x5A, sizeof(uint64_t));
    if (Status s = program.region.unmap(); !s) return s;
    const std::span<std::byte> memory = program.memory.bytes();
    std::fill(memory.begin(), memory.end(), std::byte{0});
    const auto last = restart(place_.pool(), name);
    if (!last) return last.error();
    if (Status s = last->read(CheckpointPlace::kMemory, memory); !s) return s;
    return program.memory.check(memory, "the memory part");
  }

  // Touches per second of pages at random, in a quarter of the memory; written pages are synced.
  Status randomly(const std::string& uri, bool is_write, double* rate) const {
    auto runtime = start(std::max<uint64_t>(size_bytes_ / 4, 16 * kMiB));
    if (!runtime) return runtime.error();
    auto region = map(runtime.value(), uri, size_bytes_);
    if (!region) return region.error();
    if (Status s = region->advise(0, size_bytes_, Advice::kRandom); !s) return s;
    const uint64_t pages = size_bytes_ / kPage, each = std::min<uint64_t>(pages / 4, 100'000);
    const uint64_t start_ns = now_ns();
    std::vector<std::thread> workers;
    std::atomic<uint64_t> sum{0};
    for (unsigned t = 0; t < options_.threads; ++t)
      workers.emplace_back([&, t] {
        Random random(options_.seed + t + (is_write ? 1000 : 0));
        uint64_t seen = 0;
        for (uint64_t i = 0; i < each; ++i) {
          auto* const word =
              reinterpret_cast<uint64_t*>(region->data() + random.below(pages) * kPage);
          if (is_write)
            std::atomic_ref<uint64_t>(*word).store(i);
          else
            seen += *word;
        }
        sum += seen;
      });
    for (std::thread& worker : workers) worker.join();
    if (is_write)
      if (Status s = region->sync(); !s) return s;
    *rate = static_cast<double>(each * options_.threads) / seconds_since(start_ns);
    return {};
  }

  const CheckpointOptions& options_;
  const CheckpointPlace place_;
  const uint64_t size_bytes_, memory_bytes_, budget_bytes_;
  const SeeFigure& see_;
};

// In children of their own, which see() hears.
Status measure_at(const CheckpointOptions& options, const CheckpointPlace& place,
                  const SeeFigure& see) {
  if (Status s = in_child(
          [&](const SeeFigure& show) { return Cost(options, place, show).run_program(); }, see);
      !s)
    return s;
  Cost cost(options, place, see);
  if (Status s = in_child([&](const SeeFigure&) { return cost.write_plain(); }, {}); !s) return s;
  for (const bool is_write : {false, true}) {
    double rates[2] = {};
    for (const bool is_plain : {true, false}) {
      const auto rate_of = [&](const SeeFigure& show) -> Status {
        double rate = 0;
        const std::string uri = is_plain ? place.plain() : place.pages();
        Status s = is_write ? cost.write_randomly(uri, &rate) : cost.read_randomly(uri, &rate);
        if (s.ok()) show({"", rate, 0, false, "", ""});
        return s;
      };
      if (Status s = in_child(rate_of, [&](const Figure& f) { rates[is_plain ? 0 : 1] = f.value; });
          !s)
        return s;
    }
    see({std::string(is_write ? "random writes" : "random reads") +
             " with ten checkpoints held, of a plain " + (options.store.empty() ? "file" : "image"),
         rates[1] / rates[0], 0.8, false, "x",
         cli::format_count(rates[1]) + " and " + cli::format_count(rates[0]) + " a second"});
  }
  return {};
}

}  // namespace

Status measure_checkpoints(const CheckpointOptions& options, const SeeFigure& see) {
  auto folder = OwnFolder::make(options.dir);
  if (!folder) return folder.error();
  const bool is_ceph = !options.store.empty();
  const CheckpointPlace place = is_ceph ? CheckpointPlace::on_ceph(options.store)
                                        : CheckpointPlace::in_folder(folder->path());
  const auto alone = [](const std::function<Status()>& work) {
    return in_child([&](const SeeFigure&) { return work(); }, {});
  };
  // Also looks by a child: a client of Ceph's has threads, which no fork takes along.
  if (Status s = alone([&] { return place.check_free(); }); !s) return s;
  const Status measured = measure_at(options, place, see);
  const Status removed = alone([&] { return place.remove(); });
  if (measured.ok() || removed.ok()) return measured.ok() ? removed : measured;
  return Error{measured.code(),
               measured.message() + "; and what was made stays: " + removed.message()};
}

}  // namespace outcore::bench
