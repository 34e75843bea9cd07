// Checkpoints of a running program: a cut by the engine, and a commit of the target at its end.
#include "outcore/checkpoint.h"

#include <cerrno>
#include <map>
#include <mutex>
#include <new>

#include "checkpoints/capture/copies.h"
#include "checkpoints/capture/parts.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/cancel_block.h"
#include "core/os/wait.h"
#include "core/paging/cut.h"

namespace outcore {
namespace {

constexpr uint64_t kBudgetOfMemoryAlone = 64 << 20;

// Tells a cut what to do, and collects what it leaves.
class Maker {
 public:
  Maker(const std::string& name, const CheckpointOptions& options, checkpoints::Parts& parts)
      : name_(name), options_(options), parts_(parts) {}

  paging::CutCalls calls() {
    paging::CutCalls calls;
    calls.quiesce = options_.quiesce;
    calls.resume = options_.resume;
    calls.may_stop_threads = options_.may_stop_threads;
    calls.may_wait = parts_.may_wait;
    for (const checkpoints::Memory& part : parts_.memory) calls.memory.push_back(part.bytes);
    if (!parts_.heaps.empty()) {
      calls.entered = [this] { return enter_heaps(); };
      calls.left = [this](bool is_found) { leave_heaps(is_found); };
      calls.over = [this] { end_heaps(); };
    }
    // An exception must not pass through a cut.
    calls.copied = [this](std::span<const std::byte> copies) -> Status {
      try {
        return keep_memory(copies);
      } catch (const std::exception& why) {
        return Error{ENOMEM, why.what()};
      }
    };
    calls.stored = [this]() -> Status {
      try {
        return commit();
      } catch (const std::exception& why) {
        return Error{ENOMEM, why.what()};
      }
    };
    return calls;
  }

  const CheckpointReport& report() const { return report_; }
  // An error of heaps after a complete checkpoint: they cannot be used any more.
  const Status& failure() const { return failure_; }

 private:
  Status enter_heaps() {
    for (entered_ = 0; entered_ < parts_.heaps.size(); ++entered_)
      if (Status s = parts_.heaps[entered_].heap->begin_cut(); !s) {
        leave_heaps(false);
        return s;
      }
    return {};
  }
  void leave_heaps(bool is_found) {
    for (; entered_ > 0; --entered_) parts_.heaps[entered_ - 1].heap->leave_cut(is_found);
    OC_ASSERT(entered_ <= parts_.heaps.size());
  }
  // A heap in another store goes on unchanged: only its copy has the new header.
  void end_heaps() {
    for (const checkpoints::HeapPart& part : parts_.heaps) {
      const bool is_adopted = is_stored_ && !part.is_foreign;
      const bool may_be_named = has_closed_ && !part.is_foreign;
      if (Status s = part.heap->end_cut(is_adopted, may_be_named); !s && failure_.ok())
        failure_ = s;
    }
  }

  Status keep_memory(std::span<const std::byte> copies) {
    for (const checkpoints::Memory& part : parts_.memory) {
      OC_CHECK(copies.size() >= part.bytes.size());
      auto copy = copy_for(part.name, part.bytes.size());
      if (!copy) return copy.status();
      if (Status s = checkpoints::copy_memory(copy.value(), copies.first(part.bytes.size()),
                                              &report_.copied_bytes);
          !s)
        return s;
      copies = copies.subspan(part.bytes.size());
    }
    return {};
  }

  Status commit() {
    OC_ASSERT(!is_stored_);
    for (const checkpoints::Foreign& part : parts_.foreign) {
      Store& store = *part.cache->store.load();
      auto copy = copy_for(part.name, store.size_bytes());
      if (!copy) return copy.status();
      const auto copied = checkpoints::copy_store(copy.value(), store, *part.cache->changes.load(),
                                                  &report_.copied_bytes);
      if (!copied) return copied.status();
    }
    Status s = close_heaps();
    if (s.ok()) {
      std::vector<checkpoints::CheckpointTarget::Member> members = parts_.members;
      for (const auto& [name, copy] : copies_) members.push_back({name, copy.store.get()});
      const auto number = commit_members(members);
      s = number.status();
      if (number) report_.number = number.value();
      is_stored_ = number.ok();
    }
    open_heaps();
    return s;
  }

  // The heaps are opened again after it, whatever happens.
  Result<uint32_t> commit_members(std::span<const checkpoints::CheckpointTarget::Member> members) {
    try {
      return parts_.target->commit(name_, options_.comment, members);
    } catch (const std::exception& why) {
      return Error{ENOMEM, why.what()};
    }
  }

  // The copy of an object whose store does not belong to the target.
  Result<checkpoints::Copy> copy_for(const std::string& name, uint64_t size_bytes) {
    auto copy = parts_.target->copy_for(name, size_bytes);
    if (copy) copies_[name] = copy.value();
    return copy;
  }

  int write_header(const checkpoints::HeapPart& part, const std::vector<std::byte>& header) {
    if (!part.is_foreign) return part.cache->store.load()->write(0, header);
    const auto copy = copies_.find(part.object);
    return copy == copies_.end() ? -ENOENT : copy->second.store->write(0, header);
  }
  // The copy still is what its log says, except for the header.
  void note_header(const checkpoints::HeapPart& part) const {
    const auto copy = copies_.find(part.object);
    if (copy == copies_.end()) return;
    if (copy->second.wrote) copy->second.wrote();
    paging::ChangeLog& log = *part.cache->changes.load();
    const std::lock_guard<std::mutex> guard(log.copying);
    log.note(0, part.heap->closed_header().size());
    log.copy_state = copy->second.state();
  }
  // Nobody writes to the stores before the commit, so what they contain are closed heaps. First
  // each header is written as it is: then there is space to write it again if the commit fails for
  // lack of space.
  Status close_heaps() {
    for (const bool is_closed : {false, true})
      for (const checkpoints::HeapPart& part : parts_.heaps) {
        if (!is_closed && part.is_foreign) continue;
        has_closed_ = has_closed_ || is_closed;
        const int error = write_header(
            part, is_closed ? part.heap->closed_header() : part.heap->open_header(false));
        if (error != 0)
          return base::system_error(error, "write the header of the heap " + part.heap->name_of());
        if (part.is_foreign) note_header(part);
      }
    return {};
  }
  // Before the program continues. Copies of heaps in other stores stay closed: only the next
  // checkpoint writes to them, and it begins with the header.
  void open_heaps() {
    if (!has_closed_) return;
    for (const checkpoints::HeapPart& part : parts_.heaps) {
      if (part.is_foreign) continue;
      const int error = write_header(part, part.heap->open_header(is_stored_));
      if (error == 0) continue;
      const Error why = base::system_error(
          error, "mark the heap " + part.heap->name_of() + " as open",
          "nothing more is committed, since it would pass for closed; go back to a checkpoint");
      parts_.target->refuse_commits(*part.cache->store.load(), why);
      if (failure_.ok()) failure_ = why;
    }
  }

  const std::string& name_;
  const CheckpointOptions& options_;
  checkpoints::Parts& parts_;
  CheckpointReport report_;
  Status failure_;
  std::map<std::string, checkpoints::Copy> copies_;  // by object
  size_t entered_ = 0;                               // of the heaps
  bool has_closed_ = false, is_stored_ = false;
};

}  // namespace

namespace checkpoints {

// Copies, before the cut, most of what has changed in stores whose changes are logged, while the
// program still writes. What it writes during the cut waits in memory.
static Status pre_copy(Parts& parts, uint64_t* copied) {
  for (const Foreign& part : parts.foreign) {
    const auto is_new = part.cache->log_changes();
    if (!is_new) return is_new.status();
    if (is_new.value()) continue;  // a write that is under way may not be logged yet
    Store& store = *part.cache->store.load();
    const os::SignalBlock block;
    if (Status s = parts.runtime->engine->flush_aside(*part.cache, 0, part.cache->stored_pages());
        !s)
      return s;
    auto copy = parts.target->copy_for(part.name, store.size_bytes());
    if (!copy) return copy.status();
    const auto is_done = copy_store(copy.value(), store, *part.cache->changes.load(), copied);
    if (!is_done) return is_done.status();
  }
  return {};
}

Result<CheckpointReport> make(const std::string& name, Parts& parts,
                              const CheckpointOptions& options) {
  const uint64_t start_ns = os::now_ns();
  const std::string attempted = "checkpoint '" + name + "'";
  Maker maker(name, options, parts);
  uint64_t pre_copied = 0;
  if (Status s = pre_copy(parts, &pre_copied); !s)
    return Error{s.code(), attempted + ": " + s.message()};
  const auto cut = parts.runtime->engine->cut(parts.caches, maker.calls());
  if (!cut) return Error{cut.code(), attempted + ": " + cut.message()};
  if (const Status& s = maker.failure(); !s.ok())
    return Error{s.code(), attempted + ": it is made, but " + s.message()};
  CheckpointReport report = maker.report();
  report.copied_bytes += pre_copied;
  report.pause_ns = cut->pause_ns;
  report.precopied_bytes = cut->precopied_bytes;
  report.frozen_bytes = cut->frozen_bytes;
  report.frozen_pages = cut->frozen_pages;
  report.stopped_threads = cut->stopped_threads;
  report.seconds_ns = os::now_ns() - start_ns;
  return report;
}

}  // namespace checkpoints

Result<CheckpointReport> checkpoint(const std::string& name, std::span<const CheckpointPart> parts,
                                    const CheckpointOptions& options) try {
  const os::CancelBlock uncancelled;
  const std::string attempted = "checkpoint '" + name + "'";
  if (name.empty()) return Error{EINVAL, "checkpoint: give it a name of 1 to 255 bytes"};
  auto found = checkpoints::look_up(attempted, parts, options);
  if (!found) return found.error();
  if (!found->memory.empty() && !options.may_stop_threads && !options.quiesce)
    return Error{EINVAL, attempted +
                             ": memory can be copied as it was at one moment only while "
                             "threads are stopped, or a quiesce function holds them"};
  const auto is_taken = found->target->has_checkpoint(name);
  if (!is_taken) return Error{is_taken.code(), attempted + ": " + is_taken.message()};
  if (is_taken.value())
    return Error{EEXIST, attempted + ": there is one: take another name, or remove it first"};
  // Only memory is to be copied: makes a temporary engine, which has no pages.
  if (found->runtime == nullptr) {
    RuntimeOptions own;
    uint64_t budget = kBudgetOfMemoryAlone;
    for (const checkpoints::Memory& part : found->memory)
      budget += base::round_up(part.bytes.size(), base::kSystemPage);
    own.budget_bytes = budget;
    own.checkpoint_every_ms = 0;
    auto started = Runtime::Impl::start(own);
    if (!started) return started.error();
    found->runtime = std::move(started).value();
  }
  const std::lock_guard<std::mutex> making(found->target->making());
  return checkpoints::make(name, found.value(), options);
} catch (const std::bad_alloc&) {
  return Error{ENOMEM, "checkpoint '" + name + "': no memory"};
}

}  // namespace outcore
