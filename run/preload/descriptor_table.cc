#include "run/preload/descriptor_table.h"

#include "core/base/assert.h"
#include "run/preload/door.h"

namespace outcore::preload {
namespace {

std::atomic<TakenFile*> files[DescriptorTable::kDescriptorsMax];
std::atomic<uint64_t> stdio_marks[DescriptorTable::kDescriptorsMax / 64];
std::atomic<int> file_end{0};  // no descriptor from here on belongs to a taken file

bool is_inside_table(int fd) { return fd >= 0 && fd < DescriptorTable::kDescriptorsMax; }

}  // namespace

TakenFile* DescriptorTable::entry_of(int fd) {
  return is_inside_table(fd) ? files[fd].load(std::memory_order_acquire) : nullptr;
}

TakenFile* DescriptorTable::file_of(int fd) {
  TakenFile* entry = entry_of(fd);
  if (entry == nullptr || !Door::instance().is_of_another_process()) return entry;
  if (entry->is_writable) release_or_end(*entry);
  return nullptr;
}

int DescriptorTable::next(int from) {
  OC_CHECK(from >= 0);
  for (int fd = from; fd < file_end.load(); ++fd)
    if (files[fd].load() != nullptr) return fd;
  return -1;
}

void DescriptorTable::set_file(int fd, TakenFile* taken) {
  if (!is_inside_table(fd)) return;
  files[fd].store(taken, std::memory_order_release);
  int end = file_end.load();
  while (taken != nullptr && fd >= end && !file_end.compare_exchange_weak(end, fd + 1)) {
  }
}

void DescriptorTable::forget_file(const TakenFile* taken) {
  OC_ASSERT(taken != nullptr);
  for (int fd = 0; fd < file_end.load(); ++fd) {
    TakenFile* expected = const_cast<TakenFile*>(taken);
    files[fd].compare_exchange_strong(expected, nullptr);
  }
}

bool DescriptorTable::has(const TakenFile* taken) {
  OC_ASSERT(taken != nullptr);
  for (int fd = 0; fd < file_end.load(); ++fd)
    if (files[fd].load() == taken) return true;
  return false;
}

bool DescriptorTable::is_stdio(int fd) {
  return is_inside_table(fd) &&
         (stdio_marks[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
}

void DescriptorTable::set_stdio(int fd, bool is) {
  if (!is_inside_table(fd)) return;
  const uint64_t bit = uint64_t{1} << (fd % 64);
  if (is)
    stdio_marks[fd / 64].fetch_or(bit, std::memory_order_relaxed);
  else
    stdio_marks[fd / 64].fetch_and(~bit, std::memory_order_relaxed);
}

void DescriptorTable::copied(int from, int to) {
  if (is_inside_table(from) && is_inside_table(to)) set_file(to, entry_of(from));
}

void DescriptorTable::closed(int fd) {
  if (!is_inside_table(fd)) return;
  files[fd].store(nullptr, std::memory_order_release);
  set_stdio(fd, false);
}

}  // namespace outcore::preload
