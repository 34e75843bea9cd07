#include "core/published/sheet.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/units.h"
#include "core/os/memory_file.h"
#include "core/os/parents_descriptors.h"
#include "core/os/process_lock.h"
#include "core/os/wait.h"

namespace outcore::published {
namespace {

constexpr uint64_t kBytes = sizeof(Memory);
static_assert(kBytes % base::kSystemPage == 0);

// Of the list of sheets. Never destroyed: runtimes may end after static objects.
os::ProcessLock& list_lock() {
  static auto* const lock = new os::ProcessLock;
  return *lock;
}
Sheet* first = nullptr;

void* map_private(void* at) {
  void* const memory =
      ::mmap(at, kBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

std::shared_ptr<Sheet> Sheet::make() {
  std::shared_ptr<Sheet> sheet(new Sheet);
  if (!sheet->map_published()) sheet->memory_ = static_cast<Memory*>(map_private(nullptr));
  return sheet->memory_ != nullptr ? sheet : nullptr;
}

// Where there is none (a limit of a cgroup, strict accounting), a touch would end the process. Not
// by the descriptor: the program may have closed it, and its number be another file's.
bool Sheet::has_memory(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t from = base::round_down(offset, base::kSystemPage);
  const uint64_t to = base::round_up(offset + size_bytes, base::kSystemPage);
  OC_CHECK(to <= kBytes);
  return ::madvise(reinterpret_cast<std::byte*>(memory_) + from, to - from, MADV_POPULATE_WRITE) ==
         0;
}

bool Sheet::has_event_memory() const {
  return has_memory(offsetof(Memory, events), sizeof(EventRing));
}

bool Sheet::map_published() {
  rlimit most{};  // whoever makes a file larger than he may is ended by a signal
  if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur < kBytes) return false;
  Result<int> file = os::make_memory_file(kBytes, kFileName, true);
  if (!file) return false;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.value(), 0);
  if (memory == MAP_FAILED) {
    os::ParentsDescriptors::close(file.value());
    return false;
  }
  ::munlock(memory, kBytes);  // after mlockall(MCL_FUTURE) all of it would be in memory
  ::madvise(memory, kBytes, MADV_DONTDUMP);
  memory_ = static_cast<Memory*>(memory);
  if (!has_memory(0, offsetof(Layout, slots))) {
    ::munmap(std::exchange(memory_, nullptr), kBytes);
    os::ParentsDescriptors::close(file.value());
    return false;
  }
  fd_ = file.value();
  const os::Locked locked(list_lock());
  after_ = first;
  if (first != nullptr) first->before_ = this;
  first = this;
  return true;
}

Sheet::~Sheet() {
  if (memory_ == nullptr) return;
  if (fd_ >= 0) {
    {
      const os::Locked locked(list_lock());
      (before_ != nullptr ? before_->after_ : first) = after_;
      if (after_ != nullptr) after_->before_ = before_;
    }
    os::ParentsDescriptors::close(fd_);
  }
  ::munmap(memory_, kBytes);
}

void Sheet::leave_all_in_child() {
  // There is one thread, nobody held the list's lock, and ParentsDescriptors has closed the files.
  for (Sheet* sheet = first; sheet != nullptr; sheet = sheet->after_) {
    OC_CHECK(sheet->fd_ >= 0);
    // If even this fails, what the child counts is seen as its parent's.
    static_cast<void>(map_private(sheet->memory_));
    sheet->fd_ = -1;
  }
  first = nullptr;
}

void Sheet::show() {
  Layout& layout = memory();
  OC_CHECK(layout.format == 0);
  layout.process = ::getpid();
  layout.started_ns = static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  layout.version.set(OUTCORE_VERSION);
  layout.magic.set(Layout::kMagic);
  layout.format.store(format_of_this_library(), std::memory_order_release);
}

StoreSlot* Sheet::acquire_slot() {
  for (StoreSlot& slot : memory().slots) {
    const auto offset = static_cast<uint64_t>(reinterpret_cast<std::byte*>(&slot) -
                                              reinterpret_cast<std::byte*>(memory_));
    if (fd_ >= 0 && !has_memory(offset, sizeof slot)) return nullptr;
    uint32_t users = slot.users.load(std::memory_order_relaxed);
    if (users % 2 != 0 || !slot.users.compare_exchange_strong(users, users + 1)) continue;
    const auto used = static_cast<uint32_t>(&slot - memory().slots.data()) + 1;
    uint32_t before = memory().slots_used.load();
    while (before < used && !memory().slots_used.compare_exchange_weak(before, used)) {
    }
    return &slot;
  }
  return nullptr;
}

// Cleared while it is still in use, and over: whoever takes it shows nothing of the one before.
void Sheet::release_slot(StoreSlot& slot) {
  slot.is_over.store(true);
  slot.clear();
  // Even, whatever another process may have written there.
  slot.users.store((slot.users.load() | 1) + 1);
  slot.is_over.store(false);
}

Entry::Entry(std::shared_ptr<Sheet> sheet) : sheet_(std::move(sheet)) {
  if (sheet_ != nullptr) slot_ = sheet_->acquire_slot();
  if (slot_ != nullptr) {
    events_ = &sheet_->events();
    number_ = static_cast<uint32_t>(slot_ - sheet_->memory().slots.data());
    return;
  }
  own_ = std::make_unique<StoreSlot>();
  slot_ = own_.get();
}

void Entry::publish_fault(uint64_t page, uint64_t site, uint64_t duration_ns) const {
  static PatternTable patterns;
  const auto thread = static_cast<uint32_t>(metrics::shard_of_thread(1 << 16));
  // Of all faults, so that those of the sample have the pattern that all have.
  const Pattern pattern = patterns.note(thread, site, number_,
                                        page * slot_->page_bytes.load(std::memory_order_relaxed));
  if (!events_->wants(page)) return;
  put({EventKind::kFault, pattern, 0, 0, page, 0, duration_ns, site, thread});
}

void Entry::publish(EventKind kind, uint64_t page) const {
  if (!events_->wants(page)) return;
  put({kind, Pattern::kRandom, 0, 0, page, 0, 0, 0,
       static_cast<uint32_t>(metrics::shard_of_thread(1 << 16))});
}

void Entry::put(Event event) const {
  OC_ASSERT(events_ != nullptr);
  OC_ASSERT(number_ < Layout::kSlots);
  event.slot = number_;
  event.users = slot_->users.load(std::memory_order_relaxed);
  event.time_ns = os::now_ns();
  events_->put(event);
}

Entry::~Entry() {
  if (own_ == nullptr) sheet_->release_slot(*slot_);
}

}  // namespace outcore::published
