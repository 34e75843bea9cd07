#include "python/src/region.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/assert.h"
#include "outcore/store_kind.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

constexpr unsigned kBringThreadsMax = 64;
constexpr size_t kSystemPage = 4096, kSampledPagesMax = 4096;
std::atomic<uint64_t> forks{0};

}  // namespace

uint64_t fork_count() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  static_cast<void>(registered);
  return forks.load();
}

RegionHandle::RegionHandle(std::shared_ptr<Runtime> runtime, Region region, uint64_t start)
    : runtime_(std::move(runtime)),
      region_(std::move(region)),
      uri_(region_.uri()),
      start_(start),
      forks_(fork_count()) {}

RegionHandle::~RegionHandle() {
  const WithoutGil released;
  if (is_loss_told_ && !is_inherited()) static_cast<void>(region_.unmap(true));
  Region ended = std::move(region_);
}

void RegionHandle::check(const char* what) const {
  if (is_inherited())
    raise({EPERM, std::string(what) +
                      ": this is a forked child, which does not inherit its parent's arrays: open "
                      "them in the child, or start it with spawn or forkserver"},
          uri_, Blame::kStore);
  if (!is_open())
    raise({EINVAL, std::string(what) + ": " + uri_ + " is closed"}, uri_, Blame::kArgument);
}

bool RegionHandle::is_resident(uint64_t offset, uint64_t size_bytes) const {
  unsigned char is_there[kSampledPagesMax];
  const size_t first = offset / kSystemPage, end = (offset + size_bytes - 1) / kSystemPage + 1;
  if (size_bytes == 0 || end - first > kSampledPagesMax) return size_bytes == 0;
  if (offset + size_bytes > region_.size_bytes()) return true;  // refused at once
  if (::mincore(region_.data() + first * kSystemPage, (end - first) * kSystemPage, is_there) != 0)
    return false;
  return std::all_of(is_there, is_there + (end - first), [](auto c) { return (c & 1) != 0; });
}

void RegionHandle::ensure(uint64_t offset, uint64_t size_bytes) {
  constexpr uint64_t kPagesMax = 4;  // more are worth the prefetch threads' while
  check("prefault");
  const uint64_t start = start_;
  const uint64_t page_bytes = std::max<uint64_t>(region_.page_bytes(), kSystemPage);
  const auto call = [=](Region& region) {
    if (size_bytes > kPagesMax * page_bytes) return region.prefault(offset, size_bytes);
    std::byte one;
    const uint64_t end = offset + size_bytes;
    for (uint64_t at = offset; at < end;
         at = (start + at) / page_bytes * page_bytes + page_bytes - start)
      if (Status status = region.read(at, {&one, 1}); !status) return status;
    return Status();
  };
  is_resident(offset, size_bytes) ? run("prefault", Blame::kStore, call)
                                  : run_long("prefault", Blame::kStore, call);
}

namespace {

// Touches one byte at each offset; several threads at a time as soon as the store is asked.
class Bringer {
 public:
  Bringer(Region& region, std::span<const uint64_t> offsets, unsigned threads)
      : region_(region), offsets_(offsets), threads_(std::min(threads, kBringThreadsMax)) {}

  Status run() {
    work(true);
    for (std::thread& thread : more_) thread.join();
    return std::move(first_);
  }

 private:
  void work(bool may_call) {
    constexpr auto kHitMax = std::chrono::microseconds(20);
    for (size_t i = next_.fetch_add(1); i < offsets_.size(); i = next_.fetch_add(1)) {
      std::byte one;
      const auto began = std::chrono::steady_clock::now();
      Status status = region_.read(offsets_[i], {&one, 1});
      if (!status) {
        next_.store(offsets_.size());
        const std::lock_guard<std::mutex> locked(guard_);
        if (first_) first_ = std::move(status);
      } else if (may_call && std::chrono::steady_clock::now() - began > kHitMax) {
        may_call = false;  // the store was asked: from here on several at a time
        call_others();
      }
    }
  }

  // The thread that has called waits as long as we do, and counts that.
  void help() {
    const UncountedWaits uncounted;
    work(false);
  }

  void call_others() {
    constexpr size_t kPagesEach = 8;  // fewer are not worth a thread
    CLI_CHECK(more_.empty());
    const size_t left = offsets_.size() - std::min(offsets_.size(), next_.load());
    const size_t count = std::min<size_t>(threads_, left / kPagesEach);
    const sigset_t before = block_signals();  // inherited by the threads
    try {
      while (more_.size() + 1 < count) more_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      // Fewer will do.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  Region& region_;
  const std::span<const uint64_t> offsets_;
  const unsigned threads_;
  std::atomic<size_t> next_{0};
  std::mutex guard_;
  Status first_;
  std::vector<std::thread> more_;
};

}  // namespace

void RegionHandle::bring(std::vector<uint64_t> offsets, unsigned threads) {
  check("prefault");
  const bool is_there = std::all_of(offsets.begin(), offsets.end(),
                                    [this](uint64_t offset) { return is_resident(offset, 1); });
  const auto call = [offsets = std::move(offsets), threads](Region& region) {
    return Bringer(region, offsets, threads).run();
  };
  is_there ? run("prefault", Blame::kStore, call) : run_long("prefault", Blame::kStore, call);
}

nb::list RegionHandle::residency(size_t cells) const {
  check("residency");
  const size_t pages = (region_.size_bytes() + kSystemPage - 1) / kSystemPage;
  cells = std::min(cells, pages);
  std::vector<double> share(cells);
  {
    const WithoutGil released;
    for (size_t i = 0; i < cells; ++i) {
      const size_t first = pages * i / cells, end = std::max(pages * (i + 1) / cells, first + 1);
      // Windows of neighbours, evenly spread where there are too many to look at all.
      const size_t looked_at = std::min(end - first, kSampledPagesMax), windows = 16;
      const size_t each = std::max<size_t>(looked_at / windows, 1);
      size_t seen = 0, resident = 0;
      unsigned char is_there[kSampledPagesMax];
      for (size_t w = 0; w < windows && w * each < looked_at; ++w) {
        const size_t at = first + (end - first) * w / windows;
        const size_t n = std::min(each, end - at);
        if (::mincore(region_.data() + at * kSystemPage, n * kSystemPage, is_there) != 0) continue;
        CLI_CHECK(n <= kSampledPagesMax && at + n <= pages);
        seen += n;
        resident += static_cast<size_t>(
            std::count_if(is_there, is_there + n, [](unsigned char c) { return (c & 1) != 0; }));
      }
      share[i] = seen == 0 ? 0 : static_cast<double>(resident) / static_cast<double>(seen);
    }
  }
  nb::list list;
  for (const double s : share) list.append(s);
  return list;
}

void RegionHandle::unmap(bool force) {
  if (!is_open()) return;
  check("close");
  if (exports_ != 0 || calls_ != 0) {
    const std::string text =
        exports_ != 0
            ? "cannot close " + uri_ + ": " + std::to_string(exports_) +
                  (exports_ == 1 ? " view of its memory is" : " views of its memory are") +
                  " alive (arrays made from it, buffers, tensors); delete them, or copy them, first"
            : "cannot close " + uri_ + ": another thread is in a call on it; let it end first";
    throw nb::buffer_error(text.c_str());
  }
  is_closing_ = true;
  Status status;
  {
    const WithoutGil released;
    status = region_.unmap(force);
  }
  is_closing_ = false;
  require(status, uri_, Blame::kStore);
}

void RegionHandle::close_when_unused() {
  if (!is_open() || is_inherited()) return;
  CLI_CHECK(!is_dropped_ && !is_closing_);
  is_dropped_ = true;
  if (exports_ == 0 && calls_ == 0) end_unused();
}

void RegionHandle::end_unused() {
  if (!region_.is_mapped() || is_inherited() || is_closing_) return;
  is_closing_ = true;
  nb::error_scope kept;  // an exception may be on its way
  Status status;
  {
    const WithoutGil released;
    status = region_.unmap(true);
  }
  is_closing_ = false;
  tell_loss(status);
}

void RegionHandle::end_at_exit() {
  if (!region_.is_mapped() || is_inherited() || is_closing_) return;
  if (exports_ == 0 && calls_ == 0) return end_unused();
  // Views of it may be used until the very end. What counts only once it is committed must be that
  // now, because nobody unmaps it.
  const StoreKind* const kind = kind_of_scheme(uri_);
  const bool is_committed = kind != nullptr && kind->checkpoints == StoreKind::Checkpoints::kInPool;
  Status status;
  {
    const WithoutGil released;
    status = is_committed ? region_.sync() : region_.flush();
  }
  tell_loss(status);
}

// One line for what nobody is there to catch.
void RegionHandle::tell_loss(const Status& status) {
  if (status || is_loss_told_) return;
  is_loss_told_ = true;
  const StoreKind* const kind = kind_of_scheme(uri_);
  if (kind != nullptr && kind->dies_with_process) return;  // ends with its array anyway
  const std::string text = status.message();
  // The region goes now, so whatever is said of bytes that stay in it is over.
  const std::string why = text.substr(0, text.find("; the bytes stay in memory"));
  PySys_FormatStderr(
      "outcore: what was written last to %s is lost: %s; if flush() or close() "
      "fails, make room, and call it again before the array ends\n",
      file_name_of(uri_).c_str(), why.c_str());
}

}  // namespace outcore::python
