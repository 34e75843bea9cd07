// How finished arrays are copied to another container. See arrays_drain.h.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "arrays/container/arrays_access.h"
#include "arrays/container/pieces.h"
#include "core/base/assert.h"
#include "core/os/cancel_block.h"
#include "core/os/wait.h"
#include "outcore/arrays.h"
#include "outcore/arrays_drain.h"

namespace outcore {

using arrays::ArraysAccess;

namespace {

constexpr uint64_t kPieceBytes = 16 << 20;

uint64_t bytes_of(const ArrayType& type, const Dims& dims) {
  uint64_t bytes = type.size_bytes;
  for (const uint64_t n : dims) bytes *= n;
  return bytes;
}

}  // namespace

struct ArraysDrain::Impl {
  std::string from_uri, to_uri;
  DrainOptions options;
  std::optional<Arrays> from, to;
  std::vector<std::string> names;

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool is_cancelled = false;  // guarded by mutex, like the other members
  bool has_ended = false;
  DrainProgress progress;
  std::chrono::steady_clock::time_point due;  // when as much may have travelled as has

  std::thread thread;
  Status result;  // of the thread, after it is joined
  const pid_t process = ::getpid();

  void run();
  Status drain_one(const std::string& name);
  Status check_source(const std::string& name);
  Status copy(const ArrayInfo& info, std::vector<uint64_t>* sums);
  Status verify(const ArrayInfo& info, const std::vector<uint64_t>& sums);
  Status remove_here();
  Status pass(uint64_t bytes);
  std::string attempted(const std::string& name) const {
    return "drain '" + name + "' of " + from_uri + " to " + to_uri;
  }
};

// Waits until so many more bytes may be copied. Error: ECANCELED.
Status ArraysDrain::Impl::pass(uint64_t bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  const Error cancelled{ECANCELED, "drain " + from_uri + " to " + to_uri + ": it was cancelled"};
  if (is_cancelled) return cancelled;
  if (options.bytes_per_second == 0) return {};
  changed.wait_until(lock, due, [&] { return is_cancelled; });
  if (is_cancelled) return cancelled;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(options.bytes_per_second);
  due = std::max(due, std::chrono::steady_clock::now()) +
        std::chrono::nanoseconds(static_cast<int64_t>(std::min(seconds, 1e9) * 1e9));
  return {};
}

Status ArraysDrain::Impl::copy(const ArrayInfo& info, std::vector<uint64_t>* sums) {
  std::vector<std::byte> bytes;
  Status s;
  arrays::for_each_piece(info, kPieceBytes, [&](const Dims& at, const Dims& dims) {
    const uint64_t size = bytes_of(info.type, dims);
    s = pass(size);
    if (!s.ok()) return true;
    bytes.resize(size);
    s = from->load_box(info.name, info.type, bytes.data(), at, dims);
    if (!s.ok()) return true;
    sums->push_back(XXH3_64bits(bytes.data(), size));
    s = to->store_box(info.name, info.type, bytes.data(), at, dims);
    const std::lock_guard<std::mutex> guard(mutex);
    progress.bytes_done += size;
    return !s.ok();
  });
  return s;
}

Status ArraysDrain::Impl::verify(const ArrayInfo& info, const std::vector<uint64_t>& sums) {
  std::vector<std::byte> bytes;
  size_t next = 0;
  Status s;
  arrays::for_each_piece(info, kPieceBytes, [&](const Dims& at, const Dims& dims) {
    const uint64_t size = bytes_of(info.type, dims);
    s = pass(0);
    if (!s.ok()) return true;
    bytes.resize(size);
    s = to->load_box(info.name, info.type, bytes.data(), at, dims);
    OC_CHECK(next < sums.size());
    if (s.ok() && XXH3_64bits(bytes.data(), size) != sums[next++])
      s = Error{EIO, attempted(info.name) +
                         ": what was read again is not what was written: look at that storage"};
    return !s.ok();
  });
  return s;
}

// A copy of a damaged array would have valid checksums of the damage.
Status ArraysDrain::Impl::check_source(const std::string& name) {
  std::string where;
  Status passed;
  const auto checked = from->verify(
      name, [&](const ArrayDamage& damage) { where = where.empty() ? damage.where : where; },
      [&](uint64_t) {
        passed = pass(0);
        return passed.ok();
      });
  if (!passed.ok()) return passed;
  if (!checked) return checked.status();
  if (checked->damages == 0) return {};
  return Error{EIO, attempted(name) + ": " + from_uri + " is damaged: " + where +
                        ": go back to a copy of it, or remove the array"};
}

// The copy is finished only after it has been read again.
Status ArraysDrain::Impl::drain_one(const std::string& name) {
  const auto entry = ArraysAccess::find(*from, name);
  if (!entry) return entry.status();
  const ArrayInfo info = arrays::info_of(entry.value());
  {
    const std::lock_guard<std::mutex> guard(mutex);
    progress.array = name;
  }
  if (const auto there = ArraysAccess::find(*to, name); there.ok()) {
    if (there->stamp == entry->stamp) {
      const std::lock_guard<std::mutex> guard(mutex);
      progress.bytes_done += bytes_of(info.type, info.dims);
      return {};
    }
    return Error{EEXIST, attempted(name) +
                             ": there is another array of that name: remove it there, or rename "
                             "one of them"};
  }
  if (Status s = check_source(name); !s) return s;
  if (Status s = ArraysAccess::alloc_as(*to, entry.value()); !s) return s;
  std::vector<uint64_t> sums;
  if (Status s = copy(info, &sums); !s) return s;
  if (Status s = ArraysAccess::forget(*to, name); !s) return s;
  if (Status s = verify(info, sums); !s) return s;
  return to->flush();
}

// Removes the arrays that the other container has with the same content, and notes in the same
// change where they have gone.
Status ArraysDrain::Impl::remove_here() {
  if (Status s = from->close(); !s) return s;
  ArraysOptions how;
  how.runtime = options.runtime;
  auto writer = Arrays::open(from_uri, ArraysMode::kUpdate, {}, how);
  if (!writer)
    return Error{writer.code(),
                 "drain " + from_uri + " to " + to_uri +
                     ": everything is there, but could not be removed here: " + writer.message()};
  if (Status s = ArraysAccess::leave_for(*writer, *to, names, to_uri); !s) return s;
  return writer->close();
}

void ArraysDrain::Impl::run() {
  OC_ASSERT(from.has_value() && to.has_value());
  for (const std::string& name : names) {
    result = drain_one(name);
    if (!result.ok()) {
      to->abort();
      return;
    }
    const std::lock_guard<std::mutex> guard(mutex);
    ++progress.arrays_done;
  }
  result = to->flush();
  if (result.ok() && options.may_remove) result = remove_here();
  if (Status s = to->close(); result.ok()) result = s;
  if (Status s = from->close(); result.ok()) result = s;
}

Result<ArraysDrain> ArraysDrain::start(const std::string& from, const std::string& to,
                                       const DrainOptions& options) {
  const os::CancelBlock uncancelled;
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->from_uri = from;
  impl->to_uri = ArraysAccess::absolute(to);
  if (ArraysAccess::absolute(from) == impl->to_uri)
    return Error{EINVAL, "drain " + from + " to " + to + ": both are one container"};
  ArraysOptions how;
  how.runtime = options.runtime;
  auto source = Arrays::open(from, ArraysMode::kRead, {}, how);
  if (!source) return source.error();
  for (const std::string& name : options.names)
    if (const auto entry = ArraysAccess::find(*source, name); !entry) return entry.error();
  for (const auto& [name, bytes] : ArraysAccess::own(*source)) {
    if (!options.names.empty() &&
        std::find(options.names.begin(), options.names.end(), name) == options.names.end())
      continue;
    impl->names.push_back(name);
    impl->progress.bytes += bytes;
  }
  impl->progress.arrays = impl->names.size();
  auto target = Arrays::open(to, ArraysMode::kUpdate, {}, how);
  if (!target) return target.error();
  if (ArraysAccess::is_same(*source, *target)) {
    target->abort();
    return Error{EINVAL, "drain " + from + " to " + to + ": both are one container"};
  }
  impl->from.emplace(std::move(source).value());
  impl->to.emplace(std::move(target).value());
  try {
    const os::SignalBlock block;  // the thread inherits it: signals are for the program
    impl->thread = std::thread([shared = impl.get()] {
      shared->run();
      const std::lock_guard<std::mutex> guard(shared->mutex);
      shared->has_ended = true;
      shared->changed.notify_all();
    });
  } catch (const std::system_error& why) {
    return Error{why.code().value(), "drain " + from + ": start a thread: " + why.what()};
  }
  return ArraysDrain(std::move(impl));
}

ArraysDrain::ArraysDrain(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArraysDrain::ArraysDrain(ArraysDrain&&) noexcept = default;

ArraysDrain& ArraysDrain::operator=(ArraysDrain&& other) noexcept {
  if (this != &other) {
    ArraysDrain old(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

ArraysDrain::~ArraysDrain() {
  const os::CancelBlock uncancelled;
  if (impl_ == nullptr) return;
  if (impl_->process != ::getpid()) {  // a forked child does not have the thread
    static_cast<void>(impl_.release());
    return;
  }
  cancel();
  static_cast<void>(wait());
  impl_.reset();  // this closes files
}

Status ArraysDrain::wait() {
  const os::CancelBlock uncancelled;
  if (impl_->process != ::getpid())
    return Error{EPERM, "drain " + impl_->from_uri + ": it is the parent's of this process"};
  if (impl_->thread.joinable()) impl_->thread.join();
  return impl_->result;
}

bool ArraysDrain::wait_for(uint64_t milliseconds) const {
  const os::CancelBlock uncancelled;
  std::unique_lock<std::mutex> lock(impl_->mutex);
  return impl_->changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                                 [this] { return impl_->has_ended; });
}

DrainProgress ArraysDrain::progress() const {
  const std::lock_guard<std::mutex> guard(impl_->mutex);
  return impl_->progress;
}

void ArraysDrain::cancel() {
  {
    const std::lock_guard<std::mutex> guard(impl_->mutex);
    impl_->is_cancelled = true;
  }
  impl_->changed.notify_all();
}

Result<ArraysDrain> Arrays::drain(const std::string& to, const DrainOptions& options) const {
  const os::CancelBlock uncancelled;
  if (Status s = ArraysAccess::check_open(*this, "drain " + uri()); !s) return s.error();
  DrainOptions how = options;
  if (how.runtime == nullptr) how.runtime = ArraysAccess::runtime(*this);
  return ArraysDrain::start(uri(), to, how);
}

}  // namespace outcore
