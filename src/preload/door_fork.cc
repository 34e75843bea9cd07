// The door in a forked child. See fork.h.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>

#include "preload/descriptor_table.h"
#include "preload/door.h"
#include "preload/fork.h"
#include "preload/heap.h"
#include "preload/own_descriptors.h"
#include "preload/real.h"
#include "preload/requests.h"
#include "preload/watch.h"
#include "preload/words.h"
#include "runtime/fork.h"

namespace outcore::preload {

namespace {

bool adopt(const region::View& view) { return Door::instance().adopt(view); }
bool on_touch(const std::byte* address) {
  // The heap first: it needs no lock of the door, which this thread may hold within fork().
  return Heap::revive_at(address) || Door::instance().revive(address);
}

}  // namespace

void install_fork_hooks() {
  runtime::set_fork_hooks(
      {Heap::before_fork, Heap::after_fork_in_parent, Heap::after_fork_in_child, adopt, on_touch});
}

void Door::begin() { owner_ = ::getpid(); }

bool Door::is_of_another_process() const { return owner_ != 0 && owner_ != ::getpid(); }

void Door::before_fork() { lock_.lock(); }
void Door::after_fork_in_parent() { lock_.unlock(); }

// In the child, within fork(): read-only mappings are the kernel's.
bool Door::adopt(const region::View& view) {
  const Mapping* m = mapping_covering(view.address);
  return m != nullptr && !m->file->is_writable && map_by_kernel(*m);
}

void Door::after_fork_in_child() {
  owner_ = ::getpid();
  Watch::instance().forget_in_child();
  // The parent's runtime is of no use here, and must not be ended either.
  static_cast<void>(new std::shared_ptr<Runtime::Impl>(std::move(runtime_)));
  runtime_ = nullptr;
  has_tried_runtime_ = false;
  not_taken_ = {};
  for (auto& [identity, file] : files_) {
    if (file->mappings.empty()) continue;
    if (file->is_writable) {
      inherited_.push_back(std::move(file));
      continue;
    }
    taken_count_.fetch_sub(1);
    DescriptorTable::forget_file(file.get());
    static_cast<void>(file.release());
  }
  std::erase_if(files_, [](const auto& f) { return f.second == nullptr; });
  mappings_.clear();
  lock_.unlock();
}

namespace {

bool is_gone(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  const char state = name_end + 2 < text.size() ? text[name_end + 2] : 'X';
  return state == 'Z' || state == 'X';
}

// A parent that is gone has stored all at its end. One that is just ending may not answer any more.
bool wait_for_release(const TakenFile& file) {
  constexpr uint64_t kNsMax = 30'000'000'000;
  const uint64_t start_ns = os::now_ns();
  std::atomic<uint32_t> nothing{0};
  while (!ask_to_release(file.owner, file.identity)) {
    if (is_gone(file.owner)) return true;
    if (os::now_ns() - start_ns > kNsMax) return false;
    os::wait(&nothing, 0, 5'000'000);
  }
  return true;
}

}  // namespace

// A file of the parent's becomes the kernel's in both. REQUIRES: the lock.
void Door::revive_file(TakenFile& file) {
  if (!wait_for_release(file)) {
    say("the parent process (" + std::to_string(file.owner) + ") cannot hand " + file.path +
            " back to the kernel: this forked child cannot go on",
        true);
    ::_exit(128 + SIGSEGV);
  }
  for (const auto& [address, m] : file.mappings) {
    if (!map_by_kernel(*m)) ::_exit(128 + SIGSEGV);
    runtime::forget_inherited(address, m->size_bytes);
  }
  DescriptorTable::forget_file(&file);
  taken_count_.fetch_sub(1);
  for (auto& entry : inherited_)
    if (entry.get() == &file) static_cast<void>(entry.release());
  std::erase(inherited_, nullptr);
}

bool Door::revive(const std::byte* address) {
  const Inside inside;
  const os::Locked locked(lock_);
  for (const auto& file : inherited_)
    for (const auto& [at, m] : file->mappings)
      if (address >= at && address < m->end()) {
        revive_file(*file);
        return true;
      }
  return false;
}

// The file is the parent's: it becomes the kernel's before the call goes on. REQUIRES: the lock.
bool Door::is_inherited(TakenFile& file) {
  for (const auto& entry : inherited_)
    if (entry.get() == &file) {
      revive_file(file);
      return true;
    }
  return false;
}

}  // namespace outcore::preload
