#include "core/tests/sim/buffer_simulation.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "core/buffer/buffer_file.h"
#include "core/buffer/heirs.h"

namespace outcore::sim {

using buffer::kPage;

BufferSimulation::BufferSimulation(const BufferPlan& plan, bool is_traced)
    : world_(plan, is_traced) {
  ::setenv("OUTCORE_BUFFER_DIR", world_.file.folder().c_str(), 1);
  world_.limit_bytes = buffer::kLimitLeast;
  Result<std::unique_ptr<buffer::Member>> joined =
      buffer::Member::join("simulated", world_.limit_bytes);
  if (!joined) std::abort();
  anchor_ = std::move(joined).value();
  anchor_->record().heir_answer.store(buffer::HeirAnswer::kNever);
  board_ = &anchor_->board();
  // The least limit is large: most of it is taken.
  anchor_->record().private_bytes.store(world_.limit_bytes - plan.room_pages * kPage);
  world_.kernel.open(anchor_->frames_fd());
  world_.kernel.on_page = [this] { check_memory(); };
  world_.fibers.describe = [this] { return describe(); };
  map_words();
}

BufferSimulation::~BufferSimulation() = default;

// Each member maps the board, and the marks, at other addresses. Of those only the board has words
// that are slept on.
void BufferSimulation::map_words() {
  world_.fibers.common_word = [this](std::atomic<uint32_t>* word) {
    const auto* const at = reinterpret_cast<const std::byte*>(word);
    const auto is_within = [at](const buffer::Board& board) {
      const auto* const begin = reinterpret_cast<const std::byte*>(&board);
      return at >= begin && at < begin + sizeof board;
    };
    for (const auto& process : processes_) {
      const buffer::Member* const member = process->member();
      if (member == nullptr || !is_within(member->board())) continue;
      return reinterpret_cast<std::atomic<uint32_t>*>(
          reinterpret_cast<std::byte*>(board_) +
          (at - reinterpret_cast<const std::byte*>(&member->board())));
    }
    return word;
  };
}

bool BufferSimulation::run() {
  world_.fibers.add("main", [this] { live(); });
  const bool is_good = world_.fibers.run();
  world_.tally.steps = world_.fibers.steps();
  world_.tally.takeovers = board_->takeovers.load();
  for (const buffer::MemberRecord& m : board_->members)
    world_.tally.victims += m.victims_end.load();
  if (is_good) anchor_.reset();
  static_cast<void>(anchor_.release());
  for (auto& process : processes_) static_cast<void>(process.release());
  return is_good;
}

unsigned BufferSimulation::living() const {
  return static_cast<unsigned>(std::count_if(processes_.begin(), processes_.end(),
                                             [](const auto& p) { return !p->is_over(); }));
}

bool BufferSimulation::is_all_over() const {
  return processes_.size() == world_.plan.lives && living() == 0;
}

void BufferSimulation::live() {
  const BufferPlan& plan = world_.plan;
  while (!is_all_over()) {
    if (living() < plan.processes && processes_.size() < plan.lives) {
      begin_process();
      continue;
    }
    const uint64_t wait_ns = plan.blow_ns_max == 0 ? 1'000'000 : plan.blow_ns_max;
    world_.fibers.let_pass(world_.random.between(1, wait_ns) + all_stand_still_ns());
    let_go_on();
    if (plan.blow_ns_max != 0 && !processes_.empty())
      befall(*processes_[world_.random.below(processes_.size())]);
  }
  finish();
}

void BufferSimulation::begin_process() {
  const auto number = static_cast<uint32_t>(processes_.size()) + 1;
  const bool is_writer = !world_.random.chance(world_.plan.readers);
  processes_.push_back(std::make_unique<BufferProcess>(world_, number, is_writer));
  BufferProcess* const process = processes_.back().get();
  world_.fibers.add("process " + std::to_string(number), number, [process] { process->live(); });
}

// It is killed, or is stopped for a while.
void BufferSimulation::befall(BufferProcess& process) {
  if (process.is_over()) return;
  if (world_.random.chance(world_.plan.kills)) {
    if (!may_be_killed(process)) return;
    const bool is_alone =
        process.is_writing() &&
        std::none_of(processes_.begin(), processes_.end(), [&](const auto& other) {
          return other.get() != &process && other->is_writing();
        });
    world_.tally.left_to_heirs += is_alone ? 1 : 0;
    world_.fibers.kill(process.number());
    stopped_until_ns_.erase(process.number());
    process.die();
    ++world_.tally.kills;
  } else if (world_.fibers.now_ns() >= runs_until_ns_[process.number()]) {
    stop(process);
  }
}

// Others wait half a second for it at least, or not as long as it is stopped.
void BufferSimulation::stop(const BufferProcess& process) {
  constexpr uint64_t kShortNs[] = {10'000, 1'000'000, 20'000'000};
  constexpr uint64_t kLongNs[] = {1'000'000, 300'000'000, 3'000'000'000};
  const uint64_t ns =
      world_.plan.has_long_stops ? world_.random.one_of(kLongNs) : world_.random.one_of(kShortNs);
  // It runs for as long then: or its stops together would be longer than others wait.
  ++world_.tally.stops;
  const uint64_t until_ns = world_.fibers.now_ns() + ns;
  stopped_until_ns_[process.number()] = until_ns;
  runs_until_ns_[process.number()] = until_ns + std::max<uint64_t>(ns, 10'000'000);
  world_.fibers.stop(process.number(), true);
}

// So long nothing happens.
uint64_t BufferSimulation::all_stand_still_ns() {
  if (stopped_until_ns_.empty() || stopped_until_ns_.size() < living()) return 0;
  const uint64_t now_ns = world_.fibers.now_ns();
  uint64_t first_ns = UINT64_MAX;
  for (const auto& [number, until_ns] : stopped_until_ns_) first_ns = std::min(first_ns, until_ns);
  return first_ns - std::min(first_ns, now_ns);
}

void BufferSimulation::let_go_on() {
  const uint64_t now_ns = world_.fibers.now_ns();
  for (auto i = stopped_until_ns_.begin(); i != stopped_until_ns_.end();) {
    const auto [number, until_ns] = *i;
    if (until_ns > now_ns) {
      ++i;
      continue;
    }
    world_.fibers.stop(number, false);
    i = stopped_until_ns_.erase(i);
  }
}

// What it wrote is lost if nobody is left who could store it: so somebody is.
bool BufferSimulation::may_be_killed(const BufferProcess& process) {
  bool may_be = true;
  world_.fibers.without_points([&] {
    for (const buffer::FileRecord& file : board_->files) {
      if (file.state.load() == buffer::FileState::kFree || file.is_written.load() == 0) continue;
      may_be = std::any_of(processes_.begin(), processes_.end(), [&](const auto& other) {
        return other.get() != &process && could_store(*other, file);
      });
      if (!may_be) return;
    }
  });
  return may_be;
}

bool BufferSimulation::could_store(const BufferProcess& process,
                                   const buffer::FileRecord& file) const {
  if (process.is_over() || process.member() == nullptr) return false;
  return process.is_writing() ||
         (!process.is_leaving() && buffer::Heirs::has(file, process.member()->index()));
}

// The limit holds at every moment, marks included.
void BufferSimulation::check_memory() {
  struct stat frames, marks;
  if (::fstat(anchor_->frames_fd(), &frames) != 0 || ::fstat(anchor_->marks_fd(), &marks) != 0)
    std::abort();
  uint64_t bytes = static_cast<uint64_t>(frames.st_blocks + marks.st_blocks) * 512 +
                   world_.limit_bytes - world_.plan.room_pages * kPage;
  for (const auto& process : processes_) bytes += process->private_bytes();
  world_.fibers.require(bytes <= world_.limit_bytes, "the limit is exceeded", bytes / kPage,
                        world_.limit_bytes / kPage);
}

// All have ended: the file has what was written, and whoever looks finds nothing of the dead.
void BufferSimulation::finish() {
  world_.file.check_stored(0, world_.file.pages(), UINT64_MAX, "the end of all");
  {
    const buffer::Member::FilesLock lock(*anchor_);
    world_.fibers.require(lock.is_held(), "the lock of files is free at the end");
    anchor_->clear_dead();
  }
  for (uint32_t i = 0; i < board_->members_end.load(); ++i) {
    if (i == anchor_->index()) continue;
    const buffer::MemberRecord& m = board_->members[i];
    const auto is_zero = [](const auto& word) { return word.load() == 0; };
    const bool is_clear = m.is_joined.load() == 0 && m.reserved_pages.load() == 0 &&
                          m.private_bytes.load() == 0 && m.pin_count.load() == 0 &&
                          m.punching.load() % 2 == 0 &&
                          std::all_of(m.pins.begin(), m.pins.end(), is_zero) &&
                          std::all_of(m.fills.begin(), m.fills.end(), is_zero);
    world_.fibers.require(is_clear, "who has ended still has some of the limit", i,
                          m.private_bytes.load() + m.reserved_pages.load());
  }
  for (const buffer::FileRecord& file : board_->files)
    world_.fibers.require(file.state.load() == buffer::FileState::kFree ||
                              (file.is_written.load() == 0 && !file.has_members()),
                          "a file has members, or is written, when all have ended");
}

std::string BufferSimulation::describe() const {
  std::string text;
  for (const auto& process : processes_) text += process->describe();
  return text;
}

}  // namespace outcore::sim
