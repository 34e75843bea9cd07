// Word: an atomic number in memory that several processes share, or that their protocols turn on.
//
// It is a std::atomic. In checked builds a simulation (wait_hooks) may let others run before each
// operation of sequential consistency: so a seed can stop, or kill, a process between any two of
// them. Any thread; the fault path.
#pragma once

#include <atomic>

#include "core/os/wait.h"

namespace outcore::os {

#ifdef OUTCORE_CHECKED

template <typename T>
class Word : public std::atomic<T> {
 public:
  using Base = std::atomic<T>;
  using Base::Base;
  Word() = default;

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    meet(order);
    return Base::load(order);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    Base::store(value, order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::exchange(value, order);
  }
  bool compare_exchange_strong(T& seen, T value,
                               std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::compare_exchange_strong(seen, value, order);
  }
  bool compare_exchange_weak(T& seen, T value,
                             std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::compare_exchange_weak(seen, value, order);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::fetch_add(value, order);
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::fetch_sub(value, order);
  }
  T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::fetch_or(value, order);
  }
  T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst) {
    meet(order);
    return Base::fetch_and(value, order);
  }

 private:
  static void meet(std::memory_order order) {
    if (order == std::memory_order_seq_cst) interleave();
  }
};

#else

template <typename T>
using Word = std::atomic<T>;

#endif

}  // namespace outcore::os
