// BufferProcess: one simulated process that has a file in a buffer: it joins, maps the file, its
// threads touch it as a seed decides, it unmaps and leaves; and it may be killed at any point of
// that. All that works for it is the shipped code, but for the kernel (BufferKernel) and the file's
// store.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/buffer/buffer.h"
#include "core/paging/engine.h"
#include "core/tests/sim/buffer_file.h"
#include "core/tests/sim/buffer_kernel.h"
#include "core/tests/sim/buffer_plan.h"

namespace outcore::sim {

// What all processes of a simulation work on, and what they did.
struct BufferWorld {
  BufferWorld(const BufferPlan& of, bool is_traced)
      : plan(of),
        fibers(of.seed, {.steps_max = 20'000'000,
                         .is_traced = is_traced,
                         .interleave_every = of.interleave_every,
                         .step_ns_max = 100,
                         .yield_ns_max = 1000}),
        random(of.seed ^ 0xD6E8FEB86659FD93ull),
        file(fibers, of.file_pages, random),
        kernel(fibers) {}

  const BufferPlan plan;
  Fibers fibers;
  Random random;
  BufferFile file;
  BufferKernel kernel;
  uint64_t limit_bytes = 0;
  struct Tally {
    uint64_t touches = 0, faults = 0, failures = 0, flushes = 0, pins = 0, joins = 0, refusals = 0,
             kills = 0, stops = 0, takeovers = 0, left_to_heirs = 0, victims = 0, steps = 0;
  };
  Tally tally;
};

class BufferProcess {
 public:
  BufferProcess(BufferWorld& world, uint32_t number, bool is_writer)
      : world_(world),
        number_(number),
        is_writer_(is_writer),
        random_(world.plan.seed * 1024 + number) {}

  // In a fiber of its own, of this process. The object of a killed process must stay.
  void live();

  uint32_t number() const { return number_; }
  bool is_over() const { return stage_ == Stage::kOver; }
  // Its programs run: it stores what others wrote, if it is a writer.
  bool is_writing() const { return stage_ == Stage::kWorks && is_writer_; }
  // nullptr: it is none yet, or none any more.
  const buffer::Member* member() const { return stage_ == Stage::kOver ? nullptr : member_; }
  bool is_leaving() const { return stage_ == Stage::kLeaves; }
  uint64_t private_bytes() const { return private_bytes_; }
  // It is killed now: it has nothing any more.
  void die();
  std::string describe() const;

 private:
  enum class Stage : uint8_t { kJoins, kWorks, kLeaves, kOver };
  static constexpr size_t kPinsMax = 3;
  struct Pin {
    uint64_t page = 0, incarnation = 0;
    bool is_written = false;
  };

  bool join();
  void start_engine();
  bool open_file();
  void map();
  void work();
  void leave();
  void serve(const char* name, std::function<void()> body);
  // -- the program --
  void act(std::vector<Pin>& pins);
  std::byte* touch(uint64_t page, bool is_write);
  bool touch_cell(uint64_t cell, bool is_write);
  void touch_some(bool is_write);
  void flush();
  void pin(std::vector<Pin>& pins);
  void check_pin(const Pin& pin);
  void unpin(std::vector<Pin>& pins);
  void change_private();
  Status flush_pages(uint64_t first, uint64_t end);
  std::byte* address_of(uint64_t page) const { return address_ + page * buffer::kPage; }

  BufferWorld& world_;
  const uint32_t number_;
  const bool is_writer_;
  Random random_;
  Stage stage_ = Stage::kJoins;
  std::shared_ptr<buffer::Buffer> buffer_;
  const buffer::Member* member_ = nullptr;
  std::unique_ptr<paging::Engine> engine_;
  std::unique_ptr<paging::PageCache> cache_;
  BufferSimFrames* frames_ = nullptr;
  region::View* view_ = nullptr;
  std::byte* address_ = nullptr;
  int fd_ = -1;
  uint64_t private_bytes_ = 0;  // that were granted
  bool is_ending_ = false;
  std::atomic<uint32_t> threads_left_{0}, services_left_{0};
};

}  // namespace outcore::sim
