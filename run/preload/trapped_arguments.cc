#include "run/preload/trapped_arguments.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/signal_delivery.h"
#include "run/preload/calls.h"
#include "run/preload/ranges.h"
#include "run/preload/window.h"

namespace outcore::preload {
namespace {

using Kind = ArgumentShape::Kind;
using base::kSystemPage;

// More than any call needs; memory of a larger argument is left to the kernel.
constexpr size_t kBytesMax = Bounce::kBytesMax / 2;
constexpr size_t kStringBytesMax = 64 << 10;
constexpr const char* kWhy = "a system call that Outcore cannot follow was given memory of it";

// The bytes from `p` to the end of its page.
size_t to_page_end(const std::byte* p) {
  return kSystemPage - reinterpret_cast<uint64_t>(p) % kSystemPage;
}

}  // namespace

TrappedArguments::TrappedArguments(const CallShape& shape,
                                   const long (&given)[CallShape::kArguments])
    : shape_(shape) {
  std::copy(std::begin(given), std::end(given), given_);
  std::copy(std::begin(given), std::end(given), words_);
}

// The size as the kernel would compute it; 0 if it cannot be read.
size_t TrappedArguments::bytes_of(int i) const {
  OC_ASSERT(i >= 0 && i < CallShape::kArguments);
  const ArgumentShape& a = shape_.arguments[i];
  uint64_t count = 1;
  if (a.by != ArgumentShape::kNoArgument) count = static_cast<uint64_t>(given_[a.by]);
  if (a.is_by_pointer) {
    uint32_t number = 0;
    const std::byte* const from = at(a.by);
    if (from == nullptr || !os::copy_or_fail(&number, from, sizeof number)) return 0;
    count = number;
  }
  if (a.kind == Kind::kBits) {
    // Numbers of bits are ints, or small.
    const uint64_t bits = std::min<uint64_t>(count, uint64_t{kBytesMax} * 16);
    return base::round_up(bits, 64) / 8;
  }
  count = std::min<uint64_t>(count, uint64_t{1} << 40);
  return count * a.unit_bytes + a.more_bytes;
}

bool TrappedArguments::is_ours(int i, size_t bytes) const {
  return Window::covers(at(i), 1) && bytes != 0 && concerns(at(i), bytes);
}

bool TrappedArguments::concern_ours() const {
  for (int i = 0; i < CallShape::kArguments; ++i) {
    if (!Window::covers(at(i), 1)) continue;
    switch (shape_.arguments[i].kind) {
      case Kind::kNone:
        break;
      case Kind::kHandled: {
        // The size is the next argument, except for the target of mremap.
        const long size = given_[i == 4 ? 2 : i + 1];
        const uint64_t bytes =
            std::clamp<uint64_t>(static_cast<uint64_t>(size), 1, uint64_t{1} << 46);
        if (is_ours(i, bytes)) return true;
        break;
      }
      case Kind::kString:
      case Kind::kUnknown:
      case Kind::kFutex:
        if (is_ours(i, to_page_end(at(i)))) return true;
        break;
      default:
        if (is_ours(i, bytes_of(i))) return true;
    }
  }
  return false;
}

std::byte* TrappedArguments::take(size_t bytes) {
  OC_CHECK(bytes <= Bounce::kBytesMax && used_bytes_ <= Bounce::kBytesMax);
  const size_t rounded = base::round_up(bytes, 16);
  if (!memory_) memory_.emplace(Bounce::kBytesMax);
  if (!memory_->is_there() || rounded > Bounce::kBytesMax - used_bytes_) return nullptr;
  std::byte* const p = memory_->data() + used_bytes_;
  used_bytes_ += rounded;
  return p;
}

int TrappedArguments::leave(int i, size_t bytes) {
  // A child of vfork changes nothing of ours: the kernel answers EFAULT for its absent pages.
  if (is_borrowing()) return 0;
  return leave_around(at(i), std::min<uint64_t>(bytes, uint64_t{1} << 46), kWhy);
}

int TrappedArguments::copy_string(int i) {
  if (!is_ours(i, to_page_end(at(i)))) return 0;
  std::byte* const copy = take(0);
  if (copy == nullptr) return ENOMEM;
  const size_t room = std::min(kStringBytesMax, Bounce::kBytesMax - used_bytes_);
  for (size_t done = 0; done < room;) {
    const size_t n = std::min(room - done, to_page_end(at(i) + done));
    if (!os::copy_or_fail(copy + done, at(i) + done, n)) return EFAULT;
    const void* const end = std::memchr(copy + done, 0, n);
    done = end == nullptr ? done + n
                          : static_cast<size_t>(static_cast<const std::byte*>(end) - copy) + 1;
    if (end == nullptr) continue;
    const std::byte* const taken = take(done);
    OC_CHECK(taken == copy);
    words_[i] = reinterpret_cast<long>(copy);
    return 0;
  }
  return leave(i, kStringBytesMax);
}

int TrappedArguments::copy_piece(int i, bool is_written) {
  const size_t bytes = bytes_of(i);
  if (!is_ours(i, bytes)) return 0;
  if (bytes > kBytesMax) return leave(i, bytes);
  std::byte* const copy = take(bytes);
  std::byte* const before = is_written ? take(bytes) : nullptr;
  if (copy == nullptr || (is_written && before == nullptr)) return leave(i, bytes);
  if (!os::copy_or_fail(copy, at(i), bytes)) return EFAULT;
  if (is_written) std::memcpy(before, copy, bytes);
  pieces_[i] = {at(i), copy, before, bytes};
  words_[i] = reinterpret_cast<long>(copy);
  return 0;
}

int TrappedArguments::copy_in() {
  OC_ASSERT(used_bytes_ == 0);
  for (int i = 0; i < CallShape::kArguments; ++i) {
    int error = 0;
    if (!Window::covers(at(i), 1)) continue;
    switch (shape_.arguments[i].kind) {
      case Kind::kNone:
      case Kind::kHandled:
      case Kind::kFutex:
        break;
      case Kind::kString:
        error = copy_string(i);
        break;
      case Kind::kUnknown:
        if (is_ours(i, to_page_end(at(i)))) error = leave(i, to_page_end(at(i)));
        break;
      case Kind::kIn:
        error = copy_piece(i, false);
        break;
      default:
        error = copy_piece(i, true);
    }
    if (error != 0) return error;
  }
  return 0;
}

// Copies only bytes that have changed: what other threads write beside them stays. Where two
// arguments overlap, all of the later one is copied, because the kernel writes it last: even a byte
// of it that did not change replaces what the kernel wrote for the earlier one.
int TrappedArguments::copy_out() {
  int error = 0;
  for (const Piece& piece : pieces_) {
    if (piece.before == nullptr) continue;
    const auto is_in_earlier = [&](const std::byte* place) {
      return std::any_of(static_cast<const Piece*>(pieces_), &piece, [&](const Piece& other) {
        return other.before != nullptr && place >= other.theirs &&
               place < other.theirs + other.bytes;
      });
    };
    const auto must_go = [&](size_t i) {
      return piece.copy[i] != piece.before[i] || is_in_earlier(piece.theirs + i);
    };
    for (size_t from = 0; from < piece.bytes;) {
      size_t to = from;
      while (to < piece.bytes && must_go(to)) ++to;
      if (to > from && !os::copy_or_fail(piece.theirs + from, piece.copy + from, to - from))
        error = EFAULT;
      from = to + 1;
    }
  }
  return error;
}

}  // namespace outcore::preload
