#include "umap/stores/program_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/store/range.h"

namespace outcore::umapped {
namespace {

// The buffer of a thread, for a page and as much room behind it.
class PageBuffer {
 public:
  // Also for calls that come later, in other destructors: what they ask for stays.
  ~PageBuffer() {
    memory_.reset();
    page_bytes_ = 0;
  }
  // nullptr: no memory.
  char* of(uint64_t page_bytes) {
    if (page_bytes > page_bytes_) {
      memory_.reset(static_cast<char*>(std::aligned_alloc(page_bytes, 2 * page_bytes)));
      page_bytes_ = memory_ == nullptr ? 0 : page_bytes;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  uint64_t page_bytes_ = 0;
};

char* buffer_of_thread(uint64_t page_bytes) {
  thread_local PageBuffer buffer;
  return buffer.of(page_bytes);
}

// What a call of the program's came to: 0 or -errno. UMap takes all but -1 for success.
template <typename Call>
int told(Call&& call) {
  errno = 0;
  try {
    if (call() != -1) return 0;
  } catch (...) {  // nobody above could catch it: the thread is the runtime's
    return -EIO;
  }
  return errno == 0 ? -EIO : -errno;
}

}  // namespace

ProgramStore::ProgramStore(Umap::Store* store, uint64_t size_bytes, uint64_t page_bytes)
    : store_(store), page_bytes_(page_bytes), size_bytes_(base::round_up(size_bytes, page_bytes)) {
  OC_CHECK(store_ != nullptr);
  OC_CHECK(base::is_power_of_two(page_bytes_));
  OC_CHECK(page_bytes_ >= base::kSystemPage && page_bytes_ <= base::kPageBytesMax);
}

StoreTraits ProgramStore::traits() const {
  StoreTraits traits;
  traits.alignment_bytes = page_bytes_;
  return traits;
}

int ProgramStore::read_page(uint64_t page_offset, char* page) const {
  OC_CHECK(page_offset % page_bytes_ == 0);
  std::memset(page, 0, page_bytes_);
  return told(
      [&] { return store_->read_from_store(page, page_bytes_, static_cast<off_t>(page_offset)); });
}

int ProgramStore::write_page(uint64_t page_offset, char* page) const {
  OC_CHECK(page_offset % page_bytes_ == 0);
  return told(
      [&] { return store_->write_to_store(page, page_bytes_, static_cast<off_t>(page_offset)); });
}

void ProgramStore::stop_reads() {
  std::unique_lock<std::mutex> guard(lock_);
  are_reads_stopped_ = true;
  reads_ended_.wait(guard, [&] { return reads_ == 0; });
}

void ProgramStore::allow_reads() {
  const std::lock_guard<std::mutex> guard(lock_);
  are_reads_stopped_ = false;
}

int ProgramStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(store::is_range_of(offset, into.size(), size_bytes_));
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (are_reads_stopped_) return -ECANCELED;
    ++reads_;
  }
  const int result = read_pages(offset, into);
  const std::lock_guard<std::mutex> guard(lock_);
  OC_CHECK(reads_ != 0);
  if (--reads_ == 0) reads_ended_.notify_all();
  return result;
}

int ProgramStore::read_pages(uint64_t offset, std::span<std::byte> into) const {
  char* const page = buffer_of_thread(page_bytes_);
  if (page == nullptr) return -ENOMEM;
  while (!into.empty()) {
    const uint64_t within = offset % page_bytes_;
    const uint64_t bytes = std::min<uint64_t>(into.size(), page_bytes_ - within);
    if (const int error = read_page(offset - within, page); error != 0) return error;
    std::memcpy(into.data(), page + within, bytes);
    into = into.subspan(bytes);
    offset += bytes;
  }
  return 0;
}

int ProgramStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(store::is_range_of(offset, from.size(), size_bytes_));
  char* const page = buffer_of_thread(page_bytes_);
  if (page == nullptr) return -ENOMEM;
  while (!from.empty()) {
    const uint64_t within = offset % page_bytes_;
    const uint64_t bytes = std::min<uint64_t>(from.size(), page_bytes_ - within);
    if (bytes < page_bytes_)
      if (const int error = read_page(offset - within, page); error != 0) return error;
    std::memcpy(page + within, from.data(), bytes);
    if (const int error = write_page(offset - within, page); error != 0) return error;
    from = from.subspan(bytes);
    offset += bytes;
  }
  return 0;
}

}  // namespace outcore::umapped
