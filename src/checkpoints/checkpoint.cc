// Checkpoints of a running program: the engine's cut, and the pool's commit at its end.
#include "outcore/checkpoint.h"

#include <cerrno>
#include <new>

#include "checkpoints/copies.h"
#include "checkpoints/parts.h"
#include "os/wait.h"
#include "paging/cut.h"

namespace outcore {
namespace {

constexpr uint64_t kBudgetOfMemoryAlone = 64 << 20;

// What a cut is told to do, and what it leaves.
class Maker {
 public:
  Maker(const std::string& name, const CheckpointOptions& options, checkpoints::Parts& parts)
      : name_(name), options_(options), parts_(parts) {}

  paging::CutCalls calls() {
    paging::CutCalls calls;
    calls.quiesce = options_.quiesce;
    calls.resume = options_.resume;
    calls.may_stop_threads = options_.may_stop_threads;
    for (const checkpoints::Memory& part : parts_.memory) calls.memory.push_back(part.bytes);
    calls.copied = [this](std::span<const std::byte> copies) { return keep_memory(copies); };
    calls.stored = [this] { return commit(); };
    return calls;
  }
  const CheckpointReport& report() const { return report_; }
  CheckpointReport& report() { return report_; }

 private:
  Status keep_memory(std::span<const std::byte> copies) {
    for (const checkpoints::Memory& part : parts_.memory) {
      auto object = checkpoints::object_for(*parts_.pool, part.name, part.bytes.size());
      if (!object) return object.status();
      if (Status s =
              checkpoints::copy_memory(*parts_.pool, *object.value(),
                                       copies.first(part.bytes.size()), &report_.copied_bytes);
          !s)
        return s;
      copies = copies.subspan(part.bytes.size());
    }
    return {};
  }

  Status commit() {
    for (const checkpoints::Foreign& part : parts_.foreign) {
      Store& store = *part.space->store.load();
      auto object = checkpoints::object_for(*parts_.pool, part.name, store.size_bytes());
      if (!object) return object.status();
      if (Status s =
              checkpoints::copy_store(*parts_.pool, *object.value(), store, &report_.copied_bytes);
          !s)
        return s;
    }
    const auto number = parts_.pool->commit(name_, options_.comment);
    if (!number) return number.status();
    report_.number = number.value();
    return {};
  }

  const std::string& name_;
  const CheckpointOptions& options_;
  checkpoints::Parts& parts_;
  CheckpointReport report_;
};

}  // namespace

Result<CheckpointReport> checkpoint(const std::string& name, std::span<const CheckpointPart> parts,
                                    const CheckpointOptions& options) try {
  const uint64_t start_ns = os::now_ns();
  const std::string attempted = "checkpoint '" + name + "'";
  if (name.empty()) return Error{EINVAL, "checkpoint: give it a name of 1 to 255 bytes"};
  auto found = checkpoints::look_up(attempted, parts, options);
  if (!found) return found.error();
  if (!found->memory.empty() && !options.may_stop_threads && !options.quiesce)
    return Error{EINVAL, attempted +
                             ": memory can be copied as it was at one moment only while "
                             "threads are stopped, or a quiesce function holds them"};
  if (found->pool->has_checkpoint(name))
    return Error{EEXIST, attempted + ": there is one: take another name, or remove it first"};
  // Memory alone: an engine for the time being, which has no pages.
  std::shared_ptr<Runtime::Impl> runtime = found->runtime;
  if (runtime == nullptr) {
    RuntimeOptions own;
    uint64_t budget = kBudgetOfMemoryAlone;
    for (const checkpoints::Memory& part : found->memory)
      budget += base::round_up(part.bytes.size(), base::kSystemPage);
    own.budget_bytes = budget;
    auto started = Runtime::Impl::start(own);
    if (!started) return started.error();
    runtime = std::move(started).value();
  }
  Maker maker(name, options, found.value());
  const auto cut = runtime->engine->cut(found->spaces, maker.calls());
  if (!cut) return Error{cut.code(), attempted + ": " + cut.message()};
  CheckpointReport report = maker.report();
  report.pause_ns = cut->pause_ns;
  report.precopied_bytes = cut->precopied_bytes;
  report.frozen_bytes = cut->frozen_bytes;
  report.frozen_pages = cut->frozen_pages;
  report.stopped_threads = cut->stopped_threads;
  report.seconds_ns = os::now_ns() - start_ns;
  return report;
} catch (const std::bad_alloc&) {
  return Error{ENOMEM, "checkpoint '" + name + "': no memory"};
}

}  // namespace outcore
