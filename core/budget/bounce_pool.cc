#include "core/budget/bounce_pool.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::budget {
namespace {

constexpr uint64_t kSmall = base::kSystemPage;

uint64_t power_of_two_below(uint64_t n) {
  uint64_t p = 1;
  while (p * 2 <= n) p *= 2;
  return p;
}

}  // namespace

BouncePool::Shape BouncePool::shape_for(uint64_t budget_bytes) {
  Shape shape;
  shape.small_count =
      static_cast<uint32_t>(std::clamp<uint64_t>(budget_bytes / 64 / kSmall, 4, 256));
  shape.chunk_bytes =
      std::clamp<uint64_t>(power_of_two_below(budget_bytes / 128), 16 << 10, 512 << 10);
  shape.chunk_count =
      static_cast<uint32_t>(std::clamp<uint64_t>(budget_bytes / 40 / shape.chunk_bytes, 3, 16));
  return shape;
}

BouncePool::~BouncePool() {
  if (memory_ != nullptr) os::free_table(memory_, memory().size());
}

Status BouncePool::allocate(const Shape& shape, uint64_t own_bytes) {
  OC_CHECK(memory_ == nullptr);
  OC_CHECK(shape.small_count < kTaken);
  OC_CHECK(shape.chunk_count < kTaken);
  OC_CHECK(shape.chunk_bytes % kSmall == 0);
  OC_CHECK(own_bytes % kSmall == 0);
  shape_ = shape;
  own_bytes_ = own_bytes;
  Result<std::byte*> memory = os::allocate_buffers(shape.total_bytes() + own_bytes);
  if (!memory) return memory.error();
  memory_ = memory.value();
  if (Status s = stack_[0].next.allocate(shape.small_count); !s) return s;
  if (Status s = stack_[1].next.allocate(shape.chunk_count); !s) return s;
  for (uint32_t i = 0; i < shape.small_count; ++i) stack_[0].next[i] = kTaken;
  for (uint32_t i = 0; i < shape.chunk_count; ++i) stack_[1].next[i] = kTaken;
  for (uint32_t i = shape.small_count; i > 0; --i) push(stack_[0], i - 1);
  for (uint32_t i = shape.chunk_count; i > 0; --i) push(stack_[1], i - 1);
  return {};
}

uint32_t BouncePool::pop(Stack& stack) {
  uint64_t head = stack.head.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(head) != kEmpty) {
    const uint32_t i = static_cast<uint32_t>(head);
    OC_CHECK(i < stack.next.count());
    const uint64_t next = stack.next[i].load(std::memory_order_relaxed);
    if (!stack.head.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | next,
                                          std::memory_order_acq_rel))
      continue;
    OC_CHECK(next != kTaken);
    stack.next[i].store(kTaken, std::memory_order_relaxed);
    return i;
  }
  return kEmpty;
}

void BouncePool::push(Stack& stack, uint32_t i) {
  OC_CHECK(i < stack.next.count());
  OC_CHECK(stack.next[i].load(std::memory_order_relaxed) == kTaken);
  uint64_t head = stack.head.load(std::memory_order_acquire);
  do {
    OC_CHECK(static_cast<uint32_t>(head) != i);
    stack.next[i].store(static_cast<uint32_t>(head), std::memory_order_relaxed);
  } while (!stack.head.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | i,
                                             std::memory_order_acq_rel));
}

std::span<std::byte> BouncePool::try_acquire(uint64_t size_bytes) {
  OC_ASSERT(size_bytes != 0);
  OC_ASSERT(memory_ != nullptr);
  if (size_bytes <= kSmall)
    if (const uint32_t i = pop(stack_[0]); i != kEmpty) return {smalls() + i * kSmall, kSmall};
  if (size_bytes > kSmall)
    if (const uint32_t i = pop(stack_[1]); i != kEmpty)
      return {memory_ + i * shape_.chunk_bytes, shape_.chunk_bytes};
  return {};
}

std::span<std::byte> BouncePool::acquire(uint64_t size_bytes) {
  Stack& stack = stack_[size_bytes <= kSmall ? 0 : 1];
  for (;;) {
    const uint32_t seen = stack.changes.load(std::memory_order_acquire);
    if (const std::span<std::byte> buffer = try_acquire(size_bytes); !buffer.empty()) return buffer;
    stack.waiters.fetch_add(1, std::memory_order_seq_cst);
    if (stack.changes.load(std::memory_order_seq_cst) == seen)
      os::wait(&stack.changes, seen, 100'000'000);
    stack.waiters.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void BouncePool::release(std::span<std::byte> buffer) {
  OC_CHECK(buffer.data() >= memory_);
  OC_CHECK(buffer.data() < memory_ + memory().size());
  const bool is_small = buffer.data() >= smalls();
  OC_CHECK(buffer.size() == (is_small ? kSmall : shape_.chunk_bytes));
  const auto offset = static_cast<uint64_t>(buffer.data() - (is_small ? smalls() : memory_));
  OC_CHECK(offset % buffer.size() == 0);
  Stack& stack = stack_[is_small ? 0 : 1];
  push(stack, static_cast<uint32_t>(offset / buffer.size()));
  stack.changes.fetch_add(1, std::memory_order_seq_cst);
  // Wake one thread for one buffer: with hundreds of threads, waking all would take longer than the
  // transfer. If another thread takes the buffer first, giving that thread's buffer back wakes the
  // next.
  if (stack.waiters.load(std::memory_order_seq_cst) != 0) os::wake(&stack.changes, 1);
}

}  // namespace outcore::budget
