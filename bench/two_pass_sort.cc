#include "bench/two_pass_sort.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include "bench/anonymous_memory.h"
#include "bench/check.h"
#include "bench/list_sort.h"
#include "bench/run_merge.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// On all threads; the first of their errors.
Status on_all(unsigned threads, const std::function<Status(unsigned)>& work) {
  std::mutex mutex;
  Status first_error;
  on_threads(threads, [&](unsigned thread) {
    const Status status = work(thread);
    if (status) return;
    const std::lock_guard guard(mutex);
    if (first_error) first_error = status;
  });
  return first_error;
}

}  // namespace

TwoPassSort::TwoPassSort(const RunPlan& plan, WordFile& data, WordFile* runs,
                         std::atomic<unsigned>& finished, Stage& stage)
    : plan_(plan),
      data_(data),
      runs_(runs),
      finished_(finished),
      stage_(stage),
      threads_(stage.options().threads),
      processes_(stage.options().processes) {
  BENCH_CHECK(runs != nullptr || plan.is_one_pass());
}

Status TwoPassSort::run() {
  const AnonymousMemory memory(nullptr, plan_.memory_bytes());
  if (memory.bytes().empty())
    return cli::failure(ENOMEM, "allocate " + cli::format_bytes(plan_.memory_bytes()));
  // A device takes a transfer into small pages in as many parts as pages. There may be none.
  ::madvise(memory.bytes().data(), memory.bytes().size(), MADV_HUGEPAGE);
  const std::span<uint64_t> words(reinterpret_cast<uint64_t*>(memory.bytes().data()),
                                  memory.bytes().size() / sizeof(uint64_t));
  const uint64_t first = stage_.process() * plan_.runs_each();
  for (uint64_t number = first; number < first + plan_.runs_each(); ++number)
    if (Status s = make_run(number, words); !s) return s;
  if (plan_.is_one_pass()) return {};
  if (Status s = wait_for_runs(); !s) return s;
  return merge(words);
}

Status TwoPassSort::make_run(uint64_t number, std::span<uint64_t> memory) {
  const WordRange range = plan_.run(number);
  if (range.size() == 0) return {};
  const std::span<uint64_t> words = memory.first(range.size());
  Status status = on_parts(words, [&](uint64_t first, std::span<uint64_t> part) {
    return data_.read(range.first + first, part);
  });
  if (!status) return status;
  if (status = sort_run(words); !status) return status;
  WordFile& to = plan_.is_one_pass() ? data_ : *runs_;
  status = on_parts(words, [&](uint64_t first, std::span<uint64_t> part) {
    return to.write(range.first + first, part);
  });
  if (!status) return status;
  ++runs_made_;
  if (!plan_.is_one_pass()) return write_samples(number, words);
  words_done_ += words.size();
  return {};
}

Status TwoPassSort::sort_run(std::span<uint64_t> words) {
  const auto list = std::make_unique<SortList>(
      WordRange{0, words.size()}, threads_ == 1 ? 0 : JointPartition::words_min(threads_));
  return on_all(threads_, [&](unsigned) {
    return ListSort(*list, words.data(), stage_).work() ? Status() : Stage::cancelled();
  });
}

Status TwoPassSort::on_parts(
    std::span<uint64_t> words,
    const std::function<Status(uint64_t first, std::span<uint64_t> part)>& move) const {
  const uint64_t units = words.size() / kUnitWords;
  return on_all(threads_, [&](unsigned thread) {
    const uint64_t first = units * thread / threads_, end = units * (thread + 1) / threads_;
    if (first == end) return Status();
    if (stage_.has_failed()) return Stage::cancelled();
    return move(first * kUnitWords, words.subspan(first * kUnitWords, (end - first) * kUnitWords));
  });
}

// Over the first words of the run, which is in the file by now.
Status TwoPassSort::write_samples(uint64_t number, std::span<uint64_t> words) {
  const uint64_t step = words.size() / kUnitWords;
  for (uint64_t i = 0; i < kUnitWords; ++i) words[i] = words[i * step];
  return runs_->write(plan_.samples_of(number), words.first(kUnitWords));
}

// Until those of all processes are made.
Status TwoPassSort::wait_for_runs() const {
  ++finished_;
  while (finished_.load() < processes_) {
    if (stage_.has_failed()) return Stage::cancelled();
    usleep(200);
  }
  return {};
}

Status TwoPassSort::merge(std::span<uint64_t> memory) {
  const unsigned mergers = plan_.mergers();
  BENCH_CHECK(mergers != 0);
  const uint64_t room_words = memory.size() / mergers / kUnitWords * kUnitWords;
  const auto see = [this](uint64_t words) {
    words_done_ += words;
    stage_.progress(words);
    return !stage_.has_failed();
  };
  return on_all(mergers, [&](unsigned thread) {
    RunMerge part(plan_, *runs_, memory.subspan(thread * room_words, room_words));
    return part.merge(stage_.process() * mergers + thread, processes_ * mergers, data_, see);
  });
}

}  // namespace outcore::bench
